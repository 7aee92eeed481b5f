/** OpenFeature provider: evaluating a flag is a decision of an onlineauto service, and tracking is its reward. */

import type {
  EvaluationContext,
  EvaluationContextValue,
  JsonValue,
  Provider,
  ResolutionDetails,
  TrackingEventDetails,
} from "@openfeature/server-sdk";
import type { Client, Decision, Feature, Features } from "./index.js";

/**
 * The variants of a flag by name, the baseline first; features say what variants have in common. Give a `Map` if names
 * are whole numbers, since an object sorts such keys.
 */
export interface Flag {
  readonly variants: Readonly<Record<string, JsonValue>> | ReadonlyMap<string, JsonValue>;
  readonly features?: Readonly<Record<string, Features>>;
}

export interface ProviderOptions {
  readonly flags: Readonly<Record<string, Flag>>;
  /** The tracked event that is the reward, "reward" by default; every other tracked event is a metric of its name. */
  readonly rewardEvent?: string;
  /** The number of targeting keys, and of event ids, whose latest decisions are remembered, 10,000 by default. */
  readonly remembered?: number;
  /** Milliseconds without requests after the service did not answer, 5,000 by default: evaluations return the default at once, and tracked events are lost. */
  readonly pause?: number;
}

/**
 * Provider of flags whose variants an onlineauto service chooses.
 *
 * Attributes of the evaluation context are features: an object is a namespace, and all others are in the namespace `user`. The
 * targeting key is no feature. It is the unit of experiments, and it finds the decisions that a tracked event rewards: the latest
 * one of each flag for this key. With an attribute `eventId` in the context, the id of a decision is `EVENTID/FLAG`, so that repeated
 * evaluations with the same attributes agree; a tracked event with the same `eventId` rewards the flags that this process has evaluated
 * with it, or all flags if there are none, and one with `EVENTID/FLAG`, which the metadata of an evaluation have, that decision only. A
 * flag that had its default is not rewarded. Without an `eventId`, only decisions of this process are found: with several
 * processes, give each request an `eventId`, and track with it. What is not recorded is a warning, once for each event, such as a
 * metric that no guardrail names.
 */
export class OnlineautoProvider implements Provider {
  readonly metadata = { name: "onlineauto" } as const;
  readonly runsOn = "server" as const;
  /** The number of tracked events for which no decision was found. */
  unmatched = 0;
  /** The number of rewards and metrics that the service did not record because it was away. */
  lost = 0;
  readonly #latest = new Map<string, Map<string, Decision | null>>(); // by targeting key
  readonly #ofEvent = new Map<string, Map<string, Decision | null>>();
  readonly #warned = new Set<string>();
  #awayUntil = 0;

  constructor(
    readonly client: Client,
    readonly options: ProviderOptions,
  ) {
    for (const [key, flag] of Object.entries(options.flags)) checkFlag(key, flag);
  }

  resolveBooleanEvaluation(key: string, value: boolean, context: EvaluationContext): Promise<ResolutionDetails<boolean>> {
    return this.#resolve(key, value, context);
  }
  resolveStringEvaluation(key: string, value: string, context: EvaluationContext): Promise<ResolutionDetails<string>> {
    return this.#resolve(key, value, context);
  }
  resolveNumberEvaluation(key: string, value: number, context: EvaluationContext): Promise<ResolutionDetails<number>> {
    return this.#resolve(key, value, context);
  }
  resolveObjectEvaluation<T extends JsonValue>(key: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>> {
    return this.#resolve(key, value, context);
  }

  /** Reward the latest decisions of a targeting key, with `value` of the details or 1; failures are reported by the client. */
  track(name: string, context: EvaluationContext = {}, details: TrackingEventDetails = {}): void {
    const value = details.value ?? 1;
    const eventId = idOf(details["eventId"]) || idOf(context["eventId"]);
    const key = idOf(context.targetingKey);
    const latest = [...(this.#latest.get(key)?.values() ?? [])].filter((decision) => decision !== null);
    const decisions = eventId ? this.#idsOf(eventId) : latest;
    if (decisions.length === 0) {
      this.unmatched += 1;
      const advice = "With several processes, give each request an eventId, and track with it";
      const where = eventId ? `the eventId ${JSON.stringify(eventId)}` : `the targeting key ${JSON.stringify(key)}`;
      this.#warn(`the tracked event ${name} is not recorded`, `this process has no decision for ${where}. ${advice}`);
    }
    for (const decision of decisions) void this.#send(name, decision, value);
  }

  /** Send a reward or metric, or count it as lost while the service is away. */
  async #send(name: string, decision: Decision | string, value: number): Promise<void> {
    try {
      if (performance.now() >= this.#awayUntil) {
        const isReward = name === (this.options.rewardEvent ?? "reward");
        if (await (isReward ? this.client.reward(decision, value) : this.client.metric(decision, name, value))) return;
        this.#awayUntil = performance.now() + (this.options.pause ?? 5000);
      }
      this.lost += 1;
      this.#warn(`the tracked event ${name} is lost`, "the service does not answer");
    } catch (error) {
      this.#warn(`the tracked event ${name} is not recorded`, String(error));
    }
  }

  /** Warn once of what went wrong. */
  #warn(what: string, reason: string): void {
    if (!this.#warned.has(what)) console.warn(`onlineauto: ${what}: ${reason}`);
    this.#warned.add(what);
  }

  /** Return the id of one decision, or those of the flags evaluated here with an event id, or all. */
  #idsOf(eventId: string): string[] {
    const { flags } = this.options;
    if (Object.hasOwn(flags, eventId.slice(eventId.lastIndexOf("/") + 1)) && eventId.includes("/")) return [eventId];
    const known = this.#ofEvent.get(eventId);
    const evaluated = Object.keys(flags).filter((key) => known?.get(key));
    const others = Object.keys(flags).filter((key) => !known?.has(key));
    return (evaluated.length > 0 ? evaluated : others).map((key) => `${eventId}/${key}`);
  }

  async #resolve<T extends JsonValue>(key: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>> {
    const { targetingKey, eventId, ...attributes } = context;
    const ids = [idOf(targetingKey), idOf(eventId)] as const;
    const failed = (errorCode: string, errorMessage: string): ResolutionDetails<T> => {
      this.#remember(ids, key, null);
      if (errorCode !== "PROVIDER_NOT_READY") this.#warn(`the flag ${key} has its default`, errorMessage);
      return { value, reason: "ERROR", errorCode: errorCode as ResolutionDetails<T>["errorCode"] & string, errorMessage } as ResolutionDetails<T>;
    };
    const flag = this.options.flags[key];
    if (!flag) return failed("FLAG_NOT_FOUND", `the provider has no flag ${key}`);
    const variants = variantsOf(flag);
    const wrong = [...variants].find(([, variant]) => kindOf(variant) !== kindOf(value));
    if (wrong) return failed("TYPE_MISMATCH", `variant ${wrong[0]} of flag ${key} is not of the type ${kindOf(value)}`);
    if (performance.now() < this.#awayUntil) return failed("PROVIDER_NOT_READY", "the service does not answer");
    const actions = new Map(
      [...variants.keys()].map((name): [string, Features] => [name, flag.features?.[name] ?? { [key]: { [name]: 1 } }]),
    );
    let decision: Decision;
    try {
      const given = ids[1] ? { eventId: `${ids[1]}/${key}` } : {};
      decision = await this.client.rank(featuresOf(attributes), actions, { ...given, unit: ids[0] });
    } catch (error) {
      return failed("GENERAL", String(error));
    }
    if (decision.fallback) {
      this.#awayUntil = performance.now() + (this.options.pause ?? 5000);
      return failed("PROVIDER_NOT_READY", "the service does not answer");
    }
    this.#remember(ids, key, decision);
    const flagMetadata = { eventId: decision.eventId, probability: decision.probability };
    return { value: variants.get(decision.action) as T, variant: decision.action, reason: "SPLIT", flagMetadata };
  }

  /** Remember the decision of a flag for a targeting key and an event id, or that it had its default. */
  #remember([targetingKey, eventId]: readonly [string, string], key: string, decision: Decision | null): void {
    for (const [latest, id] of [[this.#latest, targetingKey], [this.#ofEvent, eventId]] as const) {
      if (!id) continue;
      const decisions = latest.get(id) ?? new Map<string, Decision | null>();
      latest.delete(id); // so that the map is in the order of use
      latest.set(id, decisions.set(key, decision));
      if (latest.size > (this.options.remembered ?? 10_000)) latest.delete(latest.keys().next().value!);
    }
  }
}

/** Return an id as a text; "" if there is none. */
function idOf(value: unknown): string {
  return value === undefined || value === null ? "" : String(value);
}

function variantsOf(flag: Flag): ReadonlyMap<string, JsonValue> {
  return flag.variants instanceof Map ? flag.variants : new Map(Object.entries(flag.variants ?? {}));
}

/** Throw a TypeError if a flag has no variants, variants of different types, or features of an unknown variant. */
function checkFlag(key: string, flag: Flag): void {
  const variants = variantsOf(flag);
  if ([...variants.keys()].some((name) => typeof name !== "string")) throw new TypeError(`flag ${key}: give texts as names of variants`);
  const kinds = new Set([...variants.values()].map(kindOf));
  if (kinds.size !== 1) throw new TypeError(`flag ${key}: give variants of one type, the baseline first, not ${[...kinds].join(", ") || "none"}`);
  const unknown = Object.keys(flag.features ?? {}).find((name) => !variants.has(name));
  if (unknown !== undefined) throw new TypeError(`flag ${key}: features of ${unknown}: the variants are ${[...variants.keys()].join(", ")}`);
}

function kindOf(value: JsonValue): string {
  return value === null ? "object" : typeof value;
}

function featuresOf(attributes: Record<string, EvaluationContextValue | undefined>): Features {
  const user: Record<string, Feature> = {};
  const context: Record<string, Feature> = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    const isNamespace = value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);
    if (isNamespace && name === "user") Object.assign(user, featureOf(value));
    else (isNamespace ? context : user)[name] = featureOf(value);
  }
  return Object.keys(user).length === 0 ? context : { user, ...context };
}

/** Return a value of an attribute with texts in place of dates. */
function featureOf(value: EvaluationContextValue): Feature {
  return JSON.parse(JSON.stringify(value)) as Feature;
}
