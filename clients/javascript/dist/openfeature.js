/** OpenFeature provider: evaluating a flag is a decision of an onlineauto service, and tracking is its reward. */
/**
 * Provider of flags whose variants an onlineauto service chooses.
 *
 * Attributes of the evaluation context are features: an object is a namespace, and all others are in the namespace `user`. The
 * targeting key is no feature. It is the unit of experiments, and it finds the decisions that a tracked event rewards: the latest
 * one of each flag for this key. With an attribute `eventId` in the context, the id of a decision is `EVENTID/FLAG`, so that repeated
 * evaluations agree; a tracked event with the same `eventId` rewards the decisions of all flags, and one with `EVENTID/FLAG`, which the
 * metadata of an evaluation have, that decision only. Without an `eventId`, only decisions of this process are found: with several
 * processes, give each request an `eventId`, and track with it. What is not recorded is a warning, once for each event, such as a
 * metric that no guardrail names.
 */
export class OnlineautoProvider {
    client;
    options;
    metadata = { name: "onlineauto" };
    runsOn = "server";
    /** The number of tracked events for which no decision was found. */
    unmatched = 0;
    #latest = new Map();
    #warned = new Set();
    #awayUntil = 0;
    constructor(client, options) {
        this.client = client;
        this.options = options;
        for (const [key, flag] of Object.entries(options.flags))
            checkFlag(key, flag);
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
        const eventId = details["eventId"] ?? context["eventId"];
        const latest = this.#latest.get(context.targetingKey ?? "");
        const decisions = eventId === undefined ? [...(latest?.values() ?? [])] : this.#idsOf(String(eventId));
        if (decisions.length === 0) {
            this.unmatched += 1;
            const advice = "With several processes, give each request an eventId, and track with it";
            this.#warn(name, `this process has made no decision for the targeting key ${JSON.stringify(context.targetingKey)}. ${advice}`);
        }
        for (const decision of decisions) {
            const isReward = name === (this.options.rewardEvent ?? "reward");
            const sent = isReward ? this.client.reward(decision, value) : this.client.metric(decision, name, value);
            sent.catch((error) => this.#warn(name, String(error)));
        }
    }
    /** Warn once for each event that is not recorded. */
    #warn(name, reason) {
        if (!this.#warned.has(name))
            console.warn(`onlineauto: the tracked event ${name} is not recorded: ${reason}`);
        this.#warned.add(name);
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
        const variants = variantsOf(flag);
        const wrong = [...variants].find(([, variant]) => kindOf(variant) !== kindOf(value));
        if (wrong)
            return failed(value, "TYPE_MISMATCH", `variant ${wrong[0]} of flag ${key} is not of the type ${kindOf(value)}`);
        if (performance.now() < this.#awayUntil)
            return failed(value, "PROVIDER_NOT_READY", "the service does not answer");
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
        if (decision.fallback) {
            this.#awayUntil = performance.now() + (this.options.pause ?? 5000);
            return failed(value, "PROVIDER_NOT_READY", "the service does not answer");
        }
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
function variantsOf(flag) {
    return flag.variants instanceof Map ? flag.variants : new Map(Object.entries(flag.variants ?? {}));
}
/** Throw a TypeError if a flag has no variants, variants of different types, or features of an unknown variant. */
function checkFlag(key, flag) {
    const variants = variantsOf(flag);
    const kinds = new Set([...variants.values()].map(kindOf));
    if (kinds.size !== 1)
        throw new TypeError(`flag ${key}: give variants of one type, the baseline first, not ${[...kinds].join(", ") || "none"}`);
    const unknown = Object.keys(flag.features ?? {}).find((name) => !variants.has(name));
    if (unknown !== undefined)
        throw new TypeError(`flag ${key}: features of ${unknown}: the variants are ${[...variants.keys()].join(", ")}`);
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
