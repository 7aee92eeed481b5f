/** OpenFeature provider: evaluating a flag is a decision of an onlineauto service, and tracking is its reward. */
import type { EvaluationContext, JsonValue, Provider, ResolutionDetails, TrackingEventDetails } from "@openfeature/server-sdk";
import type { Client, Features } from "./index.js";
/** The variants of a flag by name, the baseline first; features say what variants have in common. */
export interface Flag {
    readonly variants: Readonly<Record<string, JsonValue>>;
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
 * one of each flag for this key, or the one whose id is `eventId` of the event's details. An attribute `eventId` is the id of the decision, so that repeated
 * evaluations agree. The metadata of a flag have `eventId` and `probability`.
 */
export declare class OnlineautoProvider implements Provider {
    #private;
    readonly client: Client;
    readonly options: ProviderOptions;
    readonly metadata: {
        readonly name: "onlineauto";
    };
    readonly runsOn: "server";
    constructor(client: Client, options: ProviderOptions);
    resolveBooleanEvaluation(key: string, value: boolean, context: EvaluationContext): Promise<ResolutionDetails<boolean>>;
    resolveStringEvaluation(key: string, value: string, context: EvaluationContext): Promise<ResolutionDetails<string>>;
    resolveNumberEvaluation(key: string, value: number, context: EvaluationContext): Promise<ResolutionDetails<number>>;
    resolveObjectEvaluation<T extends JsonValue>(key: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>>;
    /** Reward the latest decisions of a targeting key, with `value` of the details or 1; failures are reported by the client. */
    track(name: string, context?: EvaluationContext, details?: TrackingEventDetails): void;
}
