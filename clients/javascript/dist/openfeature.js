/** OpenFeature provider: evaluating a flag is a decision of an onlineauto service, and tracking is its reward. */
/**
 * Provider of flags whose variants an onlineauto service chooses.
 *
 * Attributes of the evaluation context are features: an object is a namespace, and all others are in the namespace `user`. The
 * targeting key is no feature. It is the unit of experiments, and it finds the decisions that a tracked event rewards: the latest
 * one of each flag for this key. With an attribute `eventId` in the context, the id of a decision is `EVENTID/FLAG`, so that repeated
 * evaluations agree; a tracked event with the same `eventId` rewards the decisions of all flags, and one with `EVENTID/FLAG`, which the
 * metadata of an evaluation have, that decision only. The service rejects a metric that no guardrail names; that is a warning.
 */
export class OnlineautoProvider {
    client;
    options;
    metadata = { name: "onlineauto" };
    runsOn = "server";
    #latest = new Map();
    constructor(client, options) {
        this.client = client;
        this.options = options;
    }
    resolveBooleanEvaluation(key, value, context) {
        return this.#resolve(key, value, context);
    }
    resolveStringEvaluation(key, value, context) {
        return this.#resolve(key, value, context);
    }
    resolveNumberEvaluation(key, value, context) {
        return this.#resolve(key, value, context);
    }
    resolveObjectEvaluation(key, value, context) {
        return this.#resolve(key, value, context);
    }
    /** Reward the latest decisions of a targeting key, with `value` of the details or 1; failures are reported by the client. */
    track(name, context = {}, details = {}) {
        const value = details.value ?? 1;
        const eventId = details["eventId"];
        const latest = this.#latest.get(context.targetingKey ?? "");
        const decisions = eventId === undefined ? [...(latest?.values() ?? [])] : this.#idsOf(String(eventId));
        for (const decision of decisions) {
            const isReward = name === (this.options.rewardEvent ?? "reward");
            const sent = isReward ? this.client.reward(decision, value) : this.client.metric(decision, name, value);
            sent.catch((error) => console.warn(`onlineauto: ${error}`));
        }
    }
    /** Return the id of one decision, or the ids of the decisions of all flags for an event. */
    #idsOf(eventId) {
        const isOne = Object.hasOwn(this.options.flags, eventId.slice(eventId.lastIndexOf("/") + 1)) && eventId.includes("/");
        return isOne ? [eventId] : Object.keys(this.options.flags).map((key) => `${eventId}/${key}`);
    }
    async #resolve(key, value, context) {
        const flag = this.options.flags[key];
        if (!flag)
            return failed(value, "FLAG_NOT_FOUND", `the provider has no flag ${key}`);
        const variants = flag.variants instanceof Map ? flag.variants : new Map(Object.entries(flag.variants));
        const wrong = [...variants].find(([, variant]) => kindOf(variant) !== kindOf(value));
        if (wrong)
            return failed(value, "TYPE_MISMATCH", `variant ${wrong[0]} of flag ${key} is not of the type ${kindOf(value)}`);
        const { targetingKey = "", eventId, ...attributes } = context;
        const actions = new Map([...variants.keys()].map((name) => [name, flag.features?.[name] ?? { [key]: { [name]: 1 } }]));
        let decision;
        try {
            const ids = eventId === undefined ? {} : { eventId: `${eventId}/${key}` };
            decision = await this.client.rank(featuresOf(attributes), actions, { ...ids, unit: targetingKey });
        }
        catch (error) {
            return failed(value, "GENERAL", String(error));
        }
        if (decision.fallback)
            return failed(value, "PROVIDER_NOT_READY", "the service does not answer");
        this.#remember(targetingKey, key, decision);
        const flagMetadata = { eventId: decision.eventId, probability: decision.probability };
        return { value: variants.get(decision.action), variant: decision.action, reason: "SPLIT", flagMetadata };
    }
    #remember(targetingKey, key, decision) {
        if (!targetingKey)
            return;
        const decisions = this.#latest.get(targetingKey) ?? new Map();
        this.#latest.delete(targetingKey); // so that the map is in the order of use
        this.#latest.set(targetingKey, decisions.set(key, decision));
        if (this.#latest.size > (this.options.remembered ?? 10_000))
            this.#latest.delete(this.#latest.keys().next().value);
    }
}
function failed(value, errorCode, errorMessage) {
    return { value, reason: "ERROR", errorCode: errorCode, errorMessage };
}
function kindOf(value) {
    return value === null ? "object" : typeof value;
}
function featuresOf(attributes) {
    const user = {};
    const context = {};
    for (const [name, value] of Object.entries(attributes)) {
        if (value === undefined)
            continue;
        const isNamespace = value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);
        if (isNamespace && name === "user")
            Object.assign(user, featureOf(value));
        else
            (isNamespace ? context : user)[name] = featureOf(value);
    }
    return Object.keys(user).length === 0 ? context : { user, ...context };
}
/** Return a value of an attribute with texts in place of dates. */
function featureOf(value) {
    return JSON.parse(JSON.stringify(value));
}
