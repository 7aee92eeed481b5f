"""Route prompts to three language models, and learn from the scores of some answers.

The models are threads of this process; their scores are real: those of the set ``cb-route`` (ParetoBandit).
Prices are those of the models, and the numbers of tokens are the means of the set.
``python examples/18_route_models.py 3000`` sends more prompts.
"""

import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from onlineauto import datasets

MODELS = ("gemini-2.5-pro", "llama-3.1-8b-instruct", "mistral-large-2512")
PRICES = {
    "gemini-2.5-pro": (1.25, 10.0),
    "llama-3.1-8b-instruct": (0.1, 0.1),
    "mistral-large-2512": (0.5, 1.5),
}
TOKENS = {"gemini-2.5-pro": 1490, "llama-3.1-8b-instruct": 190, "mistral-large-2512": 300}


class LanguageModel(BaseHTTPRequestHandler):
    """Answers a chat in OpenAI's format."""

    protocol_version, wbufsize = "HTTP/1.1", -1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "an answer"}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": TOKENS[asked["model"]]},
        }
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def vectors(count: int) -> list[list[float]]:
    """Return the numbers that describe each prompt, such as an embedding."""
    with gzip.open(datasets.path("cb-route-u"), "rt") as lines:
        shared = [line for line in lines if line.startswith("shared")][:count]
    return [[float(word[1:]) for word in line.split("|v ")[1].split()] for line in shared]


def routed(url: str, count: int) -> list[str]:
    """Send prompts, and feedback for every second answer; return the models that answered."""
    scores, models = datasets.true_rewards("cb-route-u"), []
    with httpx.Client(base_url=url, timeout=30) as client:
        for number, vector in enumerate(vectors(count)):
            body = {"model": "auto", "messages": [{"role": "user", "content": f"Prompt {number}"}]}
            body["onlineauto"] = {"vector": vector}
            answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
            models.append(answer["model"])
            if number % 2:
                score = float(scores[number, MODELS.index(answer["model"])])
                feedback = {"id": answer["onlineauto"]["id"], "reward": score}
                client.post("/v1/feedback", json=feedback).raise_for_status()
        spent = sum(model["dollars"] for model in client.get("/v1/status").json()["route"]["models"])
    means = ", ".join(f"{model} {scores[:count, k].mean():.3f}" for k, model in enumerate(MODELS))
    print(f"always the same model: {means}")
    chosen = scores[range(count), [MODELS.index(model) for model in models]]
    print(f"routed: {chosen.mean():.3f}, and {chosen[-count // 3 :].mean():.3f} in the last third")
    print(f"dollars for 1,000 prompts: {1000 * spent / count:.2f}")
    return models


def main(count: int) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), LanguageModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with TemporaryDirectory() as folder, socket.socket() as found:
        file = Path(folder) / "models.toml"
        lines = [
            f'[models."{name}"]\nurl = "http://127.0.0.1:{server.server_address[1]}/v1"\n'
            f"input_price = {input_price}\noutput_price = {output_price}\n"
            for name, (input_price, output_price) in PRICES.items()
        ]
        file.write_text("\n".join(lines))
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        words = ["route", str(Path(folder) / "router"), "--endpoints", str(file), "--port", str(port)]
        router = subprocess.Popen([sys.executable, "-m", "onlineauto", *words, "--quiet"])
        url = f"http://127.0.0.1:{port}"
        try:
            while True:
                try:
                    httpx.get(f"{url}/readyz")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            print(f"the page is at {url}/")
            routed(url, count)
        finally:
            router.terminate()
            router.wait()
    server.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
