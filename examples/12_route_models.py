"""Stay within a budget: route the prompts of the shop's assistant to four language models.

The router learns from the scores of every second answer. In its first hundreds of prompts it earns less than
the best constant model; ``--control 5%`` shows whether routing pays. The models are threads of this process;
their scores and costs are those of ParetoBandit's data, which are real. ``python examples/12_route_models.py
3000 0.0003`` sends more prompts, with another budget.

Next: 13 has two shops in one service.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np

from serving import running

DATA = np.load(Path(__file__).parents[1] / "datasets" / "llm-routes.npz")
MODELS, SCORES, DOLLARS = DATA["models"].tolist(), DATA["reward"], DATA["cost"]
VECTORS, ORDER = DATA["words"], np.random.default_rng(1).permutation(len(DATA["reward"]))


class LanguageModel(BaseHTTPRequestHandler):
    """Answers a chat in OpenAI's format.

    A million tokens cost one cent here, and an answer has the number of tokens that makes it as dear as the
    model's answer was.
    """

    protocol_version, wbufsize = "HTTP/1.1", -1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = int(asked["messages"][0]["content"].split()[1])
        tokens = round(1e8 * float(DOLLARS[prompt, MODELS.index(asked["model"])]))
        answer = {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "an answer"}}],
            "usage": {"prompt_tokens": 0, "completion_tokens": tokens},
        }
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def ask(url: str, count: int) -> None:
    """Send prompts, and feedback for every second answer; print what they earned and cost."""
    chosen, prompts = [], ORDER[:count]
    with httpx.Client(base_url=url, timeout=30) as client:
        for number, prompt in enumerate(prompts):
            body = {
                "model": "auto",
                "messages": [{"role": "user", "content": f"Prompt {prompt}"}],
                "onlineauto": {"vector": VECTORS[prompt].tolist()},  # such as an embedding
            }
            answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
            chosen.append(MODELS.index(answer["model"]))
            if number % 2:
                score = float(SCORES[prompt, chosen[-1]])
                feedback = {"event_id": answer["onlineauto"]["event_id"], "reward": score}
                client.post("/v1/feedback", json=feedback).raise_for_status()
    for model, name in enumerate(MODELS):
        score, cost = SCORES[prompts, model].mean(), 1000 * DOLLARS[prompts, model].mean()
        print(f"always {name:22}: {score:.3f}, {cost:7.3f} dollars")
    half = slice(count // 2, None)
    for what, part in (("routed", slice(None)), ("routed, second half", half)):
        score = SCORES[prompts[part], chosen[part]].mean()
        cost = 1000 * DOLLARS[prompts[part], chosen[part]].mean()
        print(f"{what:29}: {score:.3f}, {cost:7.3f} dollars")


def main(count: int, budget: float) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), LanguageModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "models.toml"
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        file.write_text(
            "".join(f'[models."{name}"]\nurl = "{url}"\noutput_price = 0.01\n' for name in MODELS)
        )
        words = [str(Path(folder) / "router"), "--endpoints", str(file), "--budget", str(budget)]
        with running("route", *words) as url:
            print(f"the page is at {url}/; the budget is {1000 * budget:.3f} dollars for 1,000 prompts")
            ask(url, count)
    server.shutdown()


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 600, float(words[1]) if len(words) > 1 else 0.00065)
