"""All web services of a twin, in one process on its login node.

usage: python3 -m tests.twin.services.main FOLDER     (with web.pem and web.key in it)
"""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path

from tests.twin.services import names, packages
from tests.twin.services.channel import Channel
from tests.twin.services.githost import GitHost
from tests.twin.services.http import Server, Service
from tests.twin.services.hub import Hub
from tests.twin.services.index import Index


def main() -> None:
    """Serve until the twin ends."""
    folder = Path(sys.argv[1])
    os.umask(0o022)
    packages.write(Path("/srv/index"))
    services: dict[str, Service] = {
        "hub": Hub(Path("/srv/hub")),
        "index": Index(Path("/srv/index")),
        "conda": Channel(Path("/srv/conda")),
        "git": GitHost(Path("/srv/git")),
    }
    hosts = {host: name for name in services for host in names.HOSTS[name]}
    hosts |= dict.fromkeys(names.SHADOWED, "index")
    server = Server((names.WEB, 443), services, folder, hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "web.pem", folder / "web.key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.scheme = "https"
    server.serve_forever()


if __name__ == "__main__":
    main()
