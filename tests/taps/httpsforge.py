"""An https server with a certificate of its own: git's real CGI program, or any status that a test asks for."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class HttpsServer(NamedTuple):
    url: str
    certificate: Path


@contextmanager
def https_server(served: Path, work: Path) -> Iterator[HttpsServer]:
    """Serve the repositories below ``served``; a path that starts with three digits answers with that status."""
    certificate = _certificate(work)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = self.path[1:4]
            if status.isdigit():
                self.send_response(int(status))
                if status == "401":
                    self.send_header("WWW-Authenticate", 'Basic realm="x"')
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._answer(self._ask_git())

        do_POST = do_GET

        def _ask_git(self) -> bytes:
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(served),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True)
            return done.stdout

        def _answer(self, output: bytes) -> None:
            head, _, body = output.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode("ascii").split("\r\n"))
            self.send_response(int(headers.pop("Status", "200 OK")[:3]))
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, work / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that refuse us are meant to
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield HttpsServer(f"https://127.0.0.1:{server.server_port}", certificate)
    finally:
        server.shutdown()
        server.server_close()


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(encoding))
    return folder / "certificate.pem"
