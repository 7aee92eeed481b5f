/** OpenFeature provider: evaluating a flag is a decision of an onlineauto service, and tracking is its reward. */
import type { EvaluationContext, JsonValue, Provider, ResolutionDetails, TrackingEventDetails } from "@openfeature/server-sdk";
import type { Client, Features } from "./index.js";
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
export declare class OnlineautoProvider implements Provider {
    #private;
    readonly client: Client;
    readonly options: ProviderOptions;
    readonly metadata: {
        readonly name: "onlineauto";
    };
    readonly runsOn: "server";
    /** The number of tracked events for which no decision was found. */
    unmatched: number;
    /** The number of rewards and metrics that the service did not record because it was away. */
    lost: number;
    constructor(client: Client, options: ProviderOptions);
    resolveBooleanEvaluation(key: string, value: boolean, context: EvaluationContext): Promise<ResolutionDetails<boolean>>;
    resolveStringEvaluation(key: string, value: string, context: EvaluationContext): Promise<ResolutionDetails<string>>;
    resolveNumberEvaluation(key: string, value: number, context: EvaluationContext): Promise<ResolutionDetails<number>>;
    resolveObjectEvaluation<T extends JsonValue>(key: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>>;
    /** Reward the latest decisions of a targeting key, with `value` of the details or 1; failures are reported by the client. */
    track(name: string, context?: EvaluationContext, details?: TrackingEventDetails): void;
}
