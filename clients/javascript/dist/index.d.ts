/** Client of an onlineauto service: `rank`, `reward`, `metric` and `activate`, with retries and a fallback. */
/** A value of a feature; an object is a namespace, or a group of features. */
export type Feature = number | string | boolean | null | readonly Feature[] | Features;
export interface Features {
    readonly [name: string]: Feature;
}
/**
 * The features of each action, by its id; the baseline is the first one. Give a `Map` if ids are whole numbers: an object
 * sorts such keys.
 */
export type Actions = Features | ReadonlyMap<string, Features>;
/** A decision of the service, or the baseline while the service is away. */
export interface Decision {
    /** The id, which a reward names. */
    readonly eventId: string;
    /** The id of the chosen action. */
    readonly action: string;
    readonly index: number;
    /** The probability with which the action was chosen, and those of all actions. */
    readonly probability: number;
    readonly pmf: Readonly<Record<string, number>>;
    /** The name of the model that decided; "" for the baseline. */
    readonly model: string;
    /** True if the service gave no answer: the log has no record of this decision. */
    readonly fallback: boolean;
}
export interface RankOptions {
    /** The id of the decision; by default a random one. The same id gets the same answer. */
    readonly eventId?: string;
    /** Ids of actions that must not be chosen. */
    readonly excluded?: readonly string[];
    /** The decision is learnt only once it is activated. */
    readonly deferred?: boolean;
    /** What an experiment assigns to an arm, such as the id of a user; by default the decision. */
    readonly unit?: string;
}
export interface ClientOptions {
    /** The bearer token. */
    readonly token?: string;
    /** The number of attempts, 3 by default. */
    readonly attempts?: number;
    /** Milliseconds to wait for an answer, 1,000 by default. */
    readonly timeout?: number;
    /** Milliseconds before the second attempt, 50 by default, doubled before each later one up to `longestWait`, 2,000. */
    readonly wait?: number;
    readonly longestWait?: number;
    /** Called with a reason when the service goes away, and with "" when it is back; by default a warning. */
    readonly report?: (reason: string) => void;
    /** How requests are sent, for tests and proxies; by default the global `fetch`. */
    readonly fetch?: typeof globalThis.fetch;
}
/** The service has rejected a request: the same request would be rejected again. */
export declare class RequestError extends Error {
    readonly status: number;
    constructor(message: string, status: number);
}
/**
 * Client of one service.
 *
 * Only answers of the service count: those with the status, type and content that the service sends. Other requests are sent
 * again; ids and keys make that safe. While the service is away, `rank` resolves to the baseline, the first action, and all
 * other methods to false. Nothing but `RequestError` and `TypeError` is thrown.
 */
export declare class Client {
    #private;
    constructor(url: string, options?: ClientOptions);
    /** Choose one of the actions for a context. */
    rank(context: Features, actions: Actions, options?: RankOptions): Promise<Decision>;
    /**
     * Reward a decision; resolves to whether the service has the reward. A key counts once for a decision; by default each call has
     * another key, so that each call counts.
     */
    reward(decision: Decision | string, value: number, key?: string): Promise<boolean>;
    /** Record a value of a metric of a decision; by default each call has another key, so that each call counts. */
    metric(decision: Decision | string, name: string, value: number, key?: string): Promise<boolean>;
    /** Activate a deferred decision, so that it is learnt. */
    activate(decision: Decision | string): Promise<boolean>;
}
