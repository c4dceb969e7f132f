#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server of the kind that engines have, in standard-library Python: GET /health, POST /v1/images/generations.

    python3 engine.py --port 8000 --threads 2 --tile 64

A request hashes size x size rows in tiles, on so many threads (hashlib works without the interpreter's lock on large blocks).
"""
import argparse
import concurrent.futures
import hashlib
import http.server
import json


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tile", type=int, default=64)
    return parser.parse_args()


def tile(row, rows, size):
    return hashlib.sha256(bytes([row % 256]) * (rows * size * 64)).digest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200 if self.path == "/health" else 404, {})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        size, rows = int(asked["size"]), self.server.options.tile
        parts = self.server.pool.map(lambda row: tile(row, min(rows, size - row), size), range(0, size, rows))
        self.answer(200, {"image": hashlib.sha256(b"".join(parts)).hexdigest()})

    def log_message(self, *words):
        pass


def main():
    options = parse()
    server = http.server.HTTPServer(("127.0.0.1", options.port), Handler)
    server.options, server.pool = options, concurrent.futures.ThreadPoolExecutor(options.threads)
    server.serve_forever()


if __name__ == "__main__":
    main()
