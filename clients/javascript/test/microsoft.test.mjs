/** Microsoft's own clients of Personalizer against the service: where they are installed, and ONLINEAUTO_URL names a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

const url = process.env.ONLINEAUTO_URL;
const load = (name) => import(name).catch(() => null);
const rest = await load("@azure-rest/ai-personalizer");
const classic = await load("@azure/cognitiveservices-personalizer");
const ms = await load("@azure/ms-rest-js");
const actions = [
  { id: "politics", features: [{ topic: "politics" }] },
  { id: "sports", features: [{ topic: "sports" }] },
];

test("@azure-rest/ai-personalizer ranks, rewards and activates", { skip: !(url && rest) }, async () => {
  const create = rest.default.default ?? rest.default; // the package is CommonJS
  const client = create(url, { key: "none" }, { allowInsecureConnection: true });
  const body = { eventId: "ms-1", contextFeatures: [{ age: 30 }], actions, deferActivation: true };
  const ranked = await client.path("/rank").post({ body });
  assert.equal(ranked.status, "201");
  assert.ok(["politics", "sports"].includes(ranked.body.rewardActionId));
  assert.equal((await client.path("/events/{eventId}/activate", "ms-1").post()).status, "204");
  assert.equal((await client.path("/events/{eventId}/reward", "ms-1").post({ body: { value: 1 } })).status, "204");
});

test("@azure/cognitiveservices-personalizer ranks and rewards", { skip: !(url && classic && ms) }, async () => {
  const credentials = new ms.ApiKeyCredentials({ inHeader: { "Ocp-Apim-Subscription-Key": "none" } });
  const client = new classic.PersonalizerClient(credentials, url);
  const ranked = await client.rank({ eventId: "ms-2", contextFeatures: [{ age: 30 }], actions });
  assert.ok(["politics", "sports"].includes(ranked.rewardActionId));
  await client.events.reward("ms-2", { value: 1 });
});
