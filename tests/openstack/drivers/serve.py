"""`python -m serve MODULE PORT THREADS [ARGUMENT...]`: the WSGI application of a service on 127.0.0.1, in one process."""
import importlib
import sys

module, port, threads = sys.argv[1:4]
# Services read their own command line.
sys.argv = [module.partition(".")[0], *sys.argv[4:]]
application = importlib.import_module(module).application

# Only now: a service sets its process up when it is imported.
import waitress  # noqa: E402

waitress.serve(application, host="127.0.0.1", port=int(port), threads=int(threads), ident=None, channel_timeout=300,
               clear_untrusted_proxy_headers=True)
