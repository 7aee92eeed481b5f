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
  /** The number of targeting keys whose latest decisions are remembered, 10,000 by default. */
  readonly remembered?: number;
}

/**
 * Provider of flags whose variants an onlineauto service chooses.
 *
 * Attributes of the evaluation context are features: an object is a namespace, and all others are in the namespace `user`. The
 * targeting key is no feature. It is the unit of experiments, and it finds the decisions that a tracked event rewards: the latest
 * one of each flag for this key. With an attribute `eventId` in the context, the id of a decision is `EVENTID/FLAG`, so that repeated
 * evaluations agree; a tracked event with the same `eventId` rewards the decisions of all flags, and one with `EVENTID/FLAG`, which the
 * metadata of an evaluation have, that decision only. The service rejects a metric that no guardrail names; that is a warning.
 */
export class OnlineautoProvider implements Provider {
  readonly metadata = { name: "onlineauto" } as const;
  readonly runsOn = "server" as const;
  readonly #latest = new Map<string, Map<string, Decision>>();

  constructor(
    readonly client: Client,
    readonly options: ProviderOptions,
  ) {}

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
    const eventId = details["eventId"];
    const latest = this.#latest.get(context.targetingKey ?? "");
    const decisions = eventId === undefined ? [...(latest?.values() ?? [])] : this.#idsOf(String(eventId));
    for (const decision of decisions) {
      const isReward = name === (this.options.rewardEvent ?? "reward");
      const sent = isReward ? this.client.reward(decision, value) : this.client.metric(decision, name, value);
      sent.catch((error: unknown) => console.warn(`onlineauto: ${error}`));
    }
  }

  /** Return the id of one decision, or the ids of the decisions of all flags for an event. */
  #idsOf(eventId: string): string[] {
    const isOne = Object.hasOwn(this.options.flags, eventId.slice(eventId.lastIndexOf("/") + 1)) && eventId.includes("/");
    return isOne ? [eventId] : Object.keys(this.options.flags).map((key) => `${eventId}/${key}`);
  }

  async #resolve<T extends JsonValue>(key: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>> {
    const flag = this.options.flags[key];
    if (!flag) return failed(value, "FLAG_NOT_FOUND", `the provider has no flag ${key}`);
    const variants = flag.variants instanceof Map ? flag.variants : new Map(Object.entries(flag.variants));
    const wrong = [...variants].find(([, variant]) => kindOf(variant) !== kindOf(value));
    if (wrong) return failed(value, "TYPE_MISMATCH", `variant ${wrong[0]} of flag ${key} is not of the type ${kindOf(value)}`);
    const { targetingKey = "", eventId, ...attributes } = context;
    const actions = new Map(
      [...variants.keys()].map((name): [string, Features] => [name, flag.features?.[name] ?? { [key]: { [name]: 1 } }]),
    );
    let decision: Decision;
    try {
      const ids = eventId === undefined ? {} : { eventId: `${eventId}/${key}` };
      decision = await this.client.rank(featuresOf(attributes), actions, { ...ids, unit: targetingKey });
    } catch (error) {
      return failed(value, "GENERAL", String(error));
    }
    if (decision.fallback) return failed(value, "PROVIDER_NOT_READY", "the service does not answer");
    this.#remember(targetingKey, key, decision);
    const flagMetadata = { eventId: decision.eventId, probability: decision.probability };
    return { value: variants.get(decision.action) as T, variant: decision.action, reason: "SPLIT", flagMetadata };
  }

  #remember(targetingKey: string, key: string, decision: Decision): void {
    if (!targetingKey) return;
    const decisions = this.#latest.get(targetingKey) ?? new Map<string, Decision>();
    this.#latest.delete(targetingKey); // so that the map is in the order of use
    this.#latest.set(targetingKey, decisions.set(key, decision));
    if (this.#latest.size > (this.options.remembered ?? 10_000)) this.#latest.delete(this.#latest.keys().next().value!);
  }
}

function failed<T>(value: T, errorCode: string, errorMessage: string): ResolutionDetails<T> {
  return { value, reason: "ERROR", errorCode: errorCode as ResolutionDetails<T>["errorCode"] & string, errorMessage } as ResolutionDetails<T>;
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
