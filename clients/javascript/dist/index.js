/** Client of an onlineauto service: `rank`, `reward`, `metric` and `activate`, with retries and a fallback. */
/** The service has rejected a request: the same request would be rejected again. */
export class RequestError extends Error {
    status;
    constructor(message, status) {
        super(`the service has rejected a request (${status}): ${message}`);
        this.status = status;
        this.name = "RequestError";
    }
}
/**
 * Client of one service.
 *
 * Only answers of the service count: those with the status, type and content that the service sends. Other requests are sent
 * again; ids and keys make that safe. While the service is away, `rank` resolves to the baseline, the first action, and all
 * other methods to false. Nothing but `RequestError` and `TypeError` is thrown.
 */
export class Client {
    #url;
    #headers;
    #options;
    #isAway = false;
    constructor(url, options = {}) {
        const parsed = URL.canParse(url) ? new URL(url) : null;
        if (!parsed || !/^https?:$/.test(parsed.protocol)) {
            throw new TypeError(`${JSON.stringify(url)} is not the address of a service: give http://HOST:PORT`);
        }
        this.#url = url.replace(/\/+$/, "");
        this.#headers = { "content-type": "application/json" };
        if (options.token !== undefined) {
            const token = options.token.replace(/\r?\n$/, ""); // of the file that has it
            if (!/^[!-~]+$/.test(token))
                throw new TypeError("the token has a character that no token has");
            this.#headers["authorization"] = `Bearer ${token}`;
        }
        const { timeout = 1000, wait = 50, longestWait = 2000 } = options;
        const attempts = Math.max(1, Math.floor(options.attempts ?? 3));
        const warn = (reason) => console.warn(reason ? `onlineauto: no answer of the service at ${parsed.host}: ${reason}` : `onlineauto: the service at ${parsed.host} answers again`);
        const send = (input, init) => globalThis.fetch(input, init);
        this.#options = { attempts, timeout, wait, longestWait, report: options.report ?? warn, fetch: options.fetch ?? send };
    }
    /** Choose one of the actions for a context. */
    async rank(context, actions, options = {}) {
        const entries = actions instanceof Map ? [...actions] : Object.entries(actions);
        const ids = entries.map(([id]) => id);
        const excluded = options.excluded ?? [];
        const baseline = ids.findIndex((id) => !excluded.includes(id));
        if (baseline < 0)
            throw new TypeError("there are no actions, or all are excluded: at least one must remain");
        const eventId = options.eventId ?? globalThis.crypto.randomUUID();
        const members = {
            event_id: eventId,
            context,
            excluded,
            ...(options.deferred ? { deferred: true } : {}),
            ...(options.unit ? { unit: options.unit } : {}),
        };
        const features = entries.map(([id, action]) => `${JSON.stringify(id)}:${JSON.stringify(action)}`); // in their order
        const body = `${JSON.stringify(members).slice(0, -1)},"actions":{${features.join(",")}}}`;
        const decision = await this.#send("/v1/rank", body, (reply) => readDecision(reply, eventId, ids));
        if (decision)
            return decision;
        const pmf = Object.fromEntries(ids.map((id, index) => [id, Number(index === baseline)]));
        return { eventId, action: ids[baseline], index: baseline, probability: 1, pmf, model: "", fallback: true };
    }
    /**
     * Reward a decision; resolves to whether the service has the reward. A key counts once for a decision; by default each call has
     * another key, so that each call counts.
     */
    reward(decision, value, key = globalThis.crypto.randomUUID()) {
        return this.#record("/v1/reward", decision, { reward: value, key });
    }
    /** Record a value of a metric of a decision; by default each call has another key, so that each call counts. */
    metric(decision, name, value, key = globalThis.crypto.randomUUID()) {
        return this.#record("/v1/metric", decision, { metric: name, value, key });
    }
    /** Activate a deferred decision, so that it is learnt. */
    async activate(decision) {
        const id = idOf(decision);
        if (id !== null && !isUnicode(id))
            throw new TypeError("the id has half of a surrogate pair, which is not Unicode");
        return this.#record(`/v1/activate/${encodeURIComponent(id ?? "")}`, decision, null);
    }
    async #record(path, decision, members) {
        const id = idOf(decision);
        if (id === null)
            return false; // the service does not know a fallback
        const body = members ? JSON.stringify({ event_id: id, ...members }) : "";
        return (await this.#send(path, body, (reply) => (reply.status === 204 && reply.recorded ? true : null))) ?? false;
    }
    /** Return what `read` finds in the answer to a request; null if the service is away. */
    async #send(path, body, read) {
        const { attempts, wait, longestWait, report } = this.#options;
        let reason = "";
        for (let attempt = 0; attempt < attempts; attempt++) {
            let pause = Math.min(wait * 2 ** attempt, longestWait);
            try {
                const reply = await this.#post(path, body);
                const result = read(reply);
                if (result !== null) {
                    if (this.#isAway)
                        report("");
                    this.#isAway = false;
                    return result;
                }
                const message = messageOf(reply);
                if (message && reply.status >= 400 && reply.status < 500 && reply.status !== 408 && reply.retryAfter === null) {
                    throw new RequestError(message, reply.status);
                }
                reason = `status ${reply.status}: ${message ?? "not an answer of a service"}`;
                if (/^\d+$/.test(reply.retryAfter ?? ""))
                    pause = Math.min(Number(reply.retryAfter) * 1000, longestWait);
            }
            catch (error) {
                if (error instanceof RequestError)
                    throw error;
                reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
            }
            if (attempt + 1 < attempts)
                await new Promise((resolve) => setTimeout(resolve, pause));
        }
        if (!this.#isAway)
            report(reason);
        this.#isAway = true;
        return null;
    }
    async #post(path, body) {
        const signal = AbortSignal.timeout(this.#options.timeout);
        const init = { method: "POST", headers: this.#headers, body, signal, redirect: "manual" };
        const answer = await this.#options.fetch(this.#url + path, init);
        const text = await answer.text();
        const isJson = (answer.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase() === "application/json";
        return {
            status: answer.status,
            recorded: answer.headers.get("recorded-by") === "onlineauto",
            body: isJson ? JSON.parse(text) : null,
            retryAfter: answer.headers.get("retry-after"),
        };
    }
}
function isUnicode(text) {
    return !/[\ud800-\udfff]/u.test(text);
}
function idOf(decision) {
    if (typeof decision === "string")
        return decision;
    return decision.fallback ? null : decision.eventId;
}
/** Return the decision in an answer; null if it is not that of the service to this request. */
function readDecision(reply, eventId, ids) {
    const body = reply.body;
    if (reply.status !== 200 || body === null || body["event_id"] !== eventId)
        return null;
    const { action, index, probability, pmf, model } = body;
    const probabilities = pmf && typeof pmf === "object" ? ids.map((id) => pmf[id]) : [];
    const isPmf = probabilities.every((p) => typeof p === "number" && p >= 0 && p <= 1) && Object.keys(pmf ?? {}).length === ids.length;
    const sum = probabilities.reduce((total, p) => total + p, 0);
    if (!isPmf || Math.abs(sum - 1) > 1e-3 || ids[index] !== action || probability !== pmf[action])
        return null;
    return { eventId, action, index, probability, pmf, model: String(model), fallback: false };
}
function messageOf(reply) {
    const message = reply.body?.error?.message;
    return typeof message === "string" ? message : null;
}
