"""Run by the Python that has xllamacpp: MODEL PORT. One conversation at a time, two threads, until it is killed."""

import sys
import threading

import xllamacpp


def main(model: str, port: str) -> None:
    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.n_ctx, settings.n_parallel = 8192, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 2
    settings.hostnames, settings.port = ["127.0.0.1"], int(port)
    settings.use_jinja, settings.warmup = True, False
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
