/** Tests of the client against a service at the address in ONLINEAUTO_URL, and against servers that are none. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client, RequestError } from "../dist/index.js";
import { OnlineautoProvider } from "../dist/openfeature.js";

const URL_OF_SERVICE = process.env.ONLINEAUTO_URL;
const live = { skip: URL_OF_SERVICE ? false : "ONLINEAUTO_URL is not set" };
const ACTIONS = { politics: { topic: { politics: 1 } }, sports: { topic: { sports: 1 } } };
const CONTEXT = { user: { age: 30, phone: true } };
const quiet = { attempts: 2, wait: 1, timeout: 500, report: () => {} };

async function withServer(answer, use) {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a decision has the pmf of all actions, and the same id gets the same decision", live, async () => {
  const client = new Client(URL_OF_SERVICE);
  const first = await client.rank(CONTEXT, ACTIONS, { eventId: "js-1" });
  assert.equal(first.fallback, false);
  assert.deepEqual(Object.keys(first.pmf).sort(), ["politics", "sports"]);
  assert.equal(first.probability, first.pmf[first.action]);
  assert.deepEqual(await client.rank(CONTEXT, ACTIONS, { eventId: "js-1" }), first);
});

test("a key counts once, another value of it is rejected, and each call has a key of its own", live, async () => {
  const client = new Client(URL_OF_SERVICE);
  const decision = await client.rank(CONTEXT, ACTIONS);
  assert.equal(await client.reward(decision, 1, "click"), true);
  assert.equal(await client.reward(decision, 1, "click"), true);
  await assert.rejects(client.reward(decision, 0.5, "click"), RequestError);
  assert.equal(await client.reward(decision, 0.5), true);
  assert.equal(await client.reward(decision, 0.7), true);
});

test("an excluded action is not chosen, and a deferred decision can be activated", live, async () => {
  const client = new Client(URL_OF_SERVICE);
  const decision = await client.rank(CONTEXT, ACTIONS, { excluded: ["politics"], deferred: true });
  assert.equal(decision.action, "sports");
  assert.equal(await client.activate(decision), true);
});

test("a Map keeps the order of whole numbers", live, async () => {
  const client = new Client(URL_OF_SERVICE);
  const actions = new Map([["12", { topic: { a: 1 } }], ["3", { topic: { b: 1 } }]]);
  const decision = await client.rank(CONTEXT, actions);
  assert.equal(decision.action, ["12", "3"][decision.index]);
});

test("a malformed request is an error with the service's message", live, async () => {
  const client = new Client(URL_OF_SERVICE);
  await assert.rejects(client.rank({ _hidden: { a: 1 } }, ACTIONS), /_hidden/);
});

test("without a service, rank is the baseline and a reward is not recorded", async () => {
  const reasons = [];
  const client = new Client("http://127.0.0.1:9", { ...quiet, report: (reason) => reasons.push(reason) });
  const decision = await client.rank(CONTEXT, ACTIONS, { excluded: ["politics"] });
  assert.deepEqual([decision.action, decision.index, decision.fallback], ["sports", 1, true]);
  assert.equal(await client.reward(decision, 1), false);
  assert.equal(await client.reward("another", 1), false);
  assert.equal(reasons.length, 1); // it went away once
});

test("answers of something else do not count", async () => {
  const answers = [
    [200, "text/html", "<html>log in</html>"],
    [200, "application/json", '{"event_id":"e","action":"sports","index":1,"probability":1,"pmf":{"sports":1},"model":""}'],
    [200, "application/json", "{half"],
    [204, "text/plain", ""],
    [302, "text/html", ""],
    [502, "text/html", "bad gateway"],
  ];
  for (const [status, type, body] of answers) {
    await withServer(
      (request, response) => response.writeHead(status, { "content-type": type, location: "/" }).end(body),
      async (url) => {
        const client = new Client(url, quiet);
        assert.equal((await client.rank(CONTEXT, ACTIONS, { eventId: "e" })).fallback, true, body);
        assert.equal(await client.reward("e", 1), false, body);
      },
    );
  }
});

test("a request is sent again after an error that may pass, with the same body", async () => {
  const bodies = [];
  const answer = async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    if (bodies.length === 1) {
      response.writeHead(503, { "content-type": "application/json", "retry-after": "0" });
      response.end('{"error":{"message":"the log cannot be written"}}');
    } else response.writeHead(204, { "recorded-by": "onlineauto" }).end();
  };
  assert.equal(await withServer(answer, (url) => new Client(url, quiet).reward("e", 2)), true);
  assert.equal(bodies.length, 2);
  assert.equal(bodies[0], bodies[1]);
});

test("a service that hangs is given up after the timeout", async () => {
  const client = (url) => new Client(url, { ...quiet, timeout: 50 });
  const decision = await withServer(() => {}, (url) => client(url).rank(CONTEXT, ACTIONS));
  assert.equal(decision.fallback, true);
});

test("the line end of a file is no part of a token", async () => {
  const fetch = async (_, init) => {
    assert.equal(init.headers["authorization"], "Bearer secret");
    return new Response(null, { status: 204, headers: { "recorded-by": "onlineauto" } });
  };
  assert.equal(await new Client("http://service", { ...quiet, token: "secret\n", fetch }).reward("e", 1), true);
  assert.throws(() => new Client("http://service", { token: "secret\n\n" }), TypeError);
});

test("a bad address, a bad token and no actions are errors", async () => {
  assert.throws(() => new Client("localhost:8001"), TypeError);
  assert.throws(() => new Client("http://localhost", { token: "two words" }), TypeError);
  await assert.rejects(new Client("http://127.0.0.1:9", quiet).rank(CONTEXT, {}), TypeError);
});

test("OpenFeature: an evaluation is a decision, and tracking is its reward", live, async () => {
  const client = new Client(URL_OF_SERVICE);
  const provider = new OnlineautoProvider(client, {
    flags: { layout: { variants: { grid: "a grid", list: "a list" } }, dark: { variants: { off: false, on: true } } },
  });
  const context = { targetingKey: "user-7", country: "DE", device: { phone: true } };
  const layout = await provider.resolveStringEvaluation("layout", "none", context);
  assert.ok(["a grid", "a list"].includes(layout.value));
  assert.equal(layout.reason, "SPLIT");
  assert.equal(typeof layout.flagMetadata.probability, "number");
  assert.ok(["off", "on"].includes((await provider.resolveBooleanEvaluation("dark", false, context)).variant));
  const sent = [];
  const reward = client.reward.bind(client);
  client.reward = (decision, value) => sent[sent.push(reward(decision, value)) - 1];
  provider.track("reward", context, { value: 0.5 });
  assert.deepEqual(await Promise.all(sent), [true, true]); // of both flags
});

test("OpenFeature: the id of an evaluation finds its decision, and attributes keep their namespaces", async () => {
  const ranked = [];
  const rewarded = [];
  const client = {
    rank: async (context, actions, options) => {
      ranked.push([context, [...actions.keys()], options]);
      return { eventId: options.eventId, action: "2", index: 0, probability: 1, pmf: {}, model: "", fallback: false };
    },
    reward: async (decision, value) => rewarded.push([decision, value]) > 0,
  };
  const flags = { size: { variants: new Map([["2", 20], ["1", 10]]) }, dark: { variants: { off: false } } };
  const provider = new OnlineautoProvider(client, { flags });
  const context = { eventId: 9, plan: "pro", user: { age: 3 }, since: new Date(0) };
  const size = await provider.resolveNumberEvaluation("size", 1, context);
  assert.deepEqual([size.value, size.flagMetadata.eventId], [20, "9/size"]);
  assert.deepEqual(ranked[0][0], { user: { plan: "pro", age: 3, since: "1970-01-01T00:00:00.000Z" } });
  assert.deepEqual(ranked[0][1], ["2", "1"]);
  provider.track("reward", {}, { value: 1, eventId: "9/size" });
  provider.track("reward", {}, { value: 1, eventId: 9 });
  provider.track("reward", {}, { value: 1, eventId: 8 }); // another process may have evaluated
  assert.deepEqual(rewarded, [["9/size", 1], ["9/size", 1], ["8/size", 1], ["8/dark", 1]]);
  provider.track("reward", { eventId: "9/dark" }, { value: 1, eventId: "9/size" });
  provider.track("reward", { eventId: "9/dark" });
  assert.deepEqual(rewarded.slice(4), [["9/size", 1], ["9/dark", 1]]);
});

test("OpenFeature: a tracked event without a known decision is counted, with one warning", (context) => {
  const warn = context.mock.method(console, "warn", () => {});
  const provider = new OnlineautoProvider({}, { flags: { dark: { variants: { off: false } } } });
  provider.track("click", { targetingKey: "another process" });
  provider.track("click", { targetingKey: "another process" });
  assert.equal(provider.unmatched, 2);
  assert.equal(warn.mock.callCount(), 1);
  assert.match(warn.mock.calls[0].arguments[0], /click is not recorded.*another process.*eventId/);
});

test("OpenFeature: a default is not rewarded, an empty eventId is none, and a failure is a warning", async (test) => {
  const warn = test.mock.method(console, "warn", () => {});
  let [fallback, rewarded, asked] = [false, 0, null];
  const client = {
    rank: async (_context, _actions, options) => {
      asked = options;
      if (fallback === null) throw new RequestError("no", 400);
      return { eventId: "e", action: "on", probability: 1, fallback };
    },
    reward: async () => (rewarded += 1) > 0,
  };
  const provider = new OnlineautoProvider(client, { flags: { dark: { variants: { off: false, on: true } } }, pause: 0 });
  for (const attributes of [{}, { eventId: "" }, { eventId: null }, { eventId: "visit" }]) {
    const context = { targetingKey: 7, ...attributes };
    fallback = false;
    await provider.resolveBooleanEvaluation("dark", false, context);
    assert.deepEqual(asked, { unit: "7", ...(attributes.eventId ? { eventId: "visit/dark" } : {}) });
    fallback = true;
    await provider.resolveBooleanEvaluation("dark", false, context);
    provider.track("reward", context);
  }
  assert.deepEqual([rewarded, provider.unmatched, warn.mock.callCount()], [0, 4, 1]);
  fallback = null;
  for (let count = 0; count < 2; count++) await provider.resolveBooleanEvaluation("dark", false, {});
  assert.match(warn.mock.calls[1].arguments[0], /the flag dark has its default.*no/);
  assert.equal(warn.mock.callCount(), 2);
});

test("OpenFeature: a reward that is not answered is lost, and the service is not asked for a while", async (test) => {
  const warn = test.mock.method(console, "warn", () => {});
  let asked = 0;
  const client = { reward: async () => (asked += 1) < 0 };
  const provider = new OnlineautoProvider(client, { flags: { dark: { variants: { off: false } } } });
  for (let count = 0; count < 3; count++) {
    provider.track("reward", { eventId: "visit" });
    await new Promise(setImmediate);
  }
  assert.deepEqual([provider.lost, asked, warn.mock.callCount()], [3, 1, 1]);
});

test("OpenFeature: a service that is away is not asked again for a while", async () => {
  let asked = 0;
  const client = { rank: async () => ({ fallback: (asked += 1) > 0 }) };
  const flags = { dark: { variants: { off: false, on: true } } };
  const [waits, asks] = [new OnlineautoProvider(client, { flags }), new OnlineautoProvider(client, { flags, pause: 0 })];
  for (const provider of [waits, waits, asks, asks]) {
    assert.equal((await provider.resolveBooleanEvaluation("dark", false, {})).errorCode, "PROVIDER_NOT_READY");
  }
  assert.equal(asked, 3);
});

test("OpenFeature: a flag without variants, of several types or with unknown features is an error", () => {
  const make = (flag) => () => new OnlineautoProvider({}, { flags: { layout: flag } });
  assert.throws(make({ variants: {} }), /layout: give variants/);
  assert.throws(make({}), /layout: give variants/);
  assert.throws(make({ variants: new Map([[1, "a"]]) }), /texts as names/);
  assert.throws(make({ variants: { grid: "a", list: 1 } }), /of one type.*string, number/);
  assert.throws(make({ variants: { grid: "a" }, features: { gird: {} } }), /gird: the variants are grid/);
});

test("OpenFeature: an unknown flag, another type and a service that is away give the default", async () => {
  const provider = new OnlineautoProvider(new Client("http://127.0.0.1:9", quiet), {
    flags: { layout: { variants: { grid: "a grid", list: "a list" } } },
  });
  assert.equal((await provider.resolveStringEvaluation("other", "none", {})).errorCode, "FLAG_NOT_FOUND");
  assert.equal((await provider.resolveNumberEvaluation("layout", 3, {})).errorCode, "TYPE_MISMATCH");
  const away = await provider.resolveStringEvaluation("layout", "none", {});
  assert.deepEqual([away.value, away.reason], ["none", "ERROR"]);
});
