#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The scrape server, on the fake kernel: who may read, in which form, and what slow and hostile peers can do."""

import contextlib
import gzip
import http.client
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(os.environ.get("PCPTUNE_SOURCE", pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(SOURCE / "tests/safety"))

import safety  # noqa: E402
from safety import wait_until  # noqa: E402

MALFORMED = 1_000_000 if safety.FULL else 20_000
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"


def openssl(*arguments, directory):
    done = subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise AssertionError(f"openssl {arguments}: {done.stderr}")


class Authority:
    """Makes certificates in `directory`."""

    def __init__(self, directory, name="ca"):
        self.directory, self.name = pathlib.Path(directory), name
        self.key(name)
        openssl(
            *f"req -x509 -new -key {name}.key -days 2 -subj /CN={name} -out {name}.pem".split(), directory=directory
        )

    def key(self, name):
        openssl(*f"genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {name}.key".split(), directory=self.directory)

    def sign(self, name, purpose, days=2):
        self.key(name)
        (self.directory / f"{name}.ext").write_text(
            f"extendedKeyUsage={purpose}Auth\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n"
        )
        openssl(*f"req -new -key {name}.key -subj /CN={name} -out {name}.csr".split(), directory=self.directory)
        openssl(
            *f"x509 -req -in {name}.csr -CA {self.name}.pem -CAkey {self.name}.key -CAcreateserial -days {days} "
            f"-extfile {name}.ext -out {name}.pem".split(),
            directory=self.directory,
        )

    def path(self, name):
        return self.directory / name


class ScrapeTest(safety.SafetyTest):
    def setUp(self):
        super().setUp()
        self.files = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="pcptune-tls-")))

    def start(self, metrics="# nothing more", fake=("--cpus=2", "--release=6.18"), **named):
        self.start_fake(*fake)
        d = self.daemon({}, metrics=metrics, **named).ready()
        self.url = re.search(r"metrics: (https?://\S+)/metrics", d.said()).group(1)
        self.port = int(self.url.rpartition(":")[2])
        return d

    def curl(self, *arguments, path="/metrics", url=None):
        """(status, body); the status is 0 where there was no answer."""
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}", *arguments, (url or self.url) + path],
            capture_output=True,
            timeout=60,
            check=False,
        )
        body, _, status = done.stdout.rpartition(b"\n")
        return int(status), body

    def status(self, *arguments, **named):
        return self.curl(*arguments, **named)[0]

    def token(self, text="right-token-0123456789"):
        path = self.files / "token"
        path.write_text(text + "\n")
        return path

    def bearer(self, token):
        return ("--header", f"Authorization: Bearer {token}")

    def refused(self, metrics, pattern):
        if not hasattr(self, "fake"):
            self.start_fake()
        d = self.daemon({}, metrics=metrics)
        self.assertEqual(d.wait(), 1, d.said())
        self.assertRegex(d.said(), pattern)


class Forms(ScrapeTest):
    def test_a_scraper_that_takes_gzip_gets_the_same_text_in_fewer_bytes(self):
        self.start()
        for accept in ("text/plain", "application/openmetrics-text; version=1.0.0"):
            plain = self.curl("--header", f"Accept: {accept}")[1]
            packed = self.curl("--header", f"Accept: {accept}", "--header", "Accept-Encoding: gzip")[1]
            text = gzip.decompress(packed)
            self.assertLess(len(packed), len(plain) / 3)
            names = [re.findall(rb"^[^# ]\S*", t, re.M) for t in (text, plain)]
            self.assertEqual(names[0], names[1])
            self.assertEqual(text.endswith(b"# EOF\n"), "openmetrics" in accept)
        for refusing in ("gzip;q=0", "identity", "br", "gzip;q=0.1, identity;q=0.9"):
            body = self.curl("--header", f"Accept-Encoding: {refusing}")[1]
            self.assertIn(b"# HELP pcptune_", body, refusing)

    def test_what_shows_one_snapshot_is_rendered_once(self):
        self.start()
        with contextlib.closing(http_connection(self.port)) as c:
            texts = set()
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                texts.add(ask(c))
        self.assertLessEqual(len(texts), 2, "a new text without a new snapshot: ticks are a second apart")

    def test_a_head_request_tells_the_length_that_a_get_would_have(self):
        self.start()
        head = self.curl("--head")[1]
        self.assertRegex(head, rb"(?i)content-length: [1-9]\d{3,}")


def http_connection(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=30)


def ask(connection, path="/metrics"):
    connection.request("GET", path)
    return connection.getresponse().read()


class Tokens(ScrapeTest):
    def test_only_who_shows_the_token_may_read(self):
        self.start(f"TokenFile={self.token()}")
        self.assertEqual(self.status(*self.bearer("right-token-0123456789")), 200)
        self.assertEqual(self.status("--header", "Authorization: bearer right-token-0123456789"), 200)
        for wrong in ("", "right-token-012345678", "right-token-01234567890", "RIGHT-TOKEN-0123456789"):
            self.assertEqual(self.status(*self.bearer(wrong)), 401, wrong)
        self.assertEqual(self.status("--header", "Authorization: Basic cmlnaHQtdG9rZW4tMDEyMzQ1Njc4OQ=="), 401)
        for path in ("/metrics", "/healthz", "/", "/nothing"):
            self.assertEqual(self.status(path=path), 401, path)
        self.assertRegex(self.curl("--include")[1], rb"(?i)www-authenticate: bearer")

    def test_who_may_use_the_unix_socket_needs_no_token(self):
        d = self.start(f"TokenFile={self.token()}")
        self.assertIn("pcptune_build_info", d.metrics())

    def test_a_new_token_is_taken_at_a_reload_and_a_broken_one_refuses_it(self):
        d = self.start(f"TokenFile={self.token()}")
        self.token("another-token")
        self.assertEqual(self.status(*self.bearer("another-token")), 401, "not before the reload")
        d.send(signal.SIGHUP).until_said("reloaded:")
        self.assertEqual(self.status(*self.bearer("another-token")), 200)
        self.token("")
        d.send(signal.SIGHUP).until_said("reload: .*token, which TokenFile= .*is empty.*openssl rand.*what ran goes on")
        self.assertEqual(self.status(*self.bearer("another-token")), 200)

    def test_the_token_appears_nowhere(self):
        d = self.start(f"TokenFile={self.token()}", fake=("--cpus=2", "--release=6.18"))
        self.assertEqual(self.status(*self.bearer("right-token-0123456789")), 200)
        shown = d.said() + d.metrics() + self.ctl("status").stdout + self.ctl("--json", "status").stdout
        self.assertNotIn("right-token", shown)

    def test_a_token_file_that_cannot_be_used_is_no_start(self):
        self.refused(f"TokenFile={self.files}/none", "cannot read .*/none, which TokenFile= .* No such file")
        self.refused(f"TokenFile={self.token('')}", "is empty")
        self.refused(f"TokenFile={self.token('two words')}", "more than one word")
        self.refused("TokenFile=token", r"pcptuned\.conf:\d+:\d+: TokenFile= .*absolute path")


class Tls(ScrapeTest):
    def setUp(self):
        super().setUp()
        self.ca = Authority(self.files)
        self.ca.sign("server", "server")
        self.ca.sign("client", "client")
        self.tls = f"TLSCertificate={self.files}/server.pem\nTLSKey={self.files}/server.key\n"
        self.trust = ("--cacert", self.files / "ca.pem")

    def as_client(self, name):
        return ("--cert", self.files / f"{name}.pem", "--key", self.files / f"{name}.key")

    def test_a_scraper_that_knows_the_authority_reads_by_tls_and_nobody_reads_without(self):
        d = self.start(self.tls)
        self.assertTrue(self.url.startswith("https://"))
        self.assertEqual(self.status(*self.trust), 200)
        self.assertEqual(self.status(), 0, "an unknown authority")
        self.assertEqual(self.status(url=self.url.replace("https", "http")), 0, "plain HTTP")
        self.assertIn("pcptune_build_info", d.metrics(), "the Unix socket is plain")

    def test_nothing_below_tls_1_2_is_spoken(self):
        self.start(self.tls)
        old = ("--ciphers", "DEFAULT@SECLEVEL=0", *self.trust)
        self.assertEqual(self.status("--tls-max", "1.3", *old), 200)
        self.assertEqual(self.status("--tls-max", "1.2", *old), 200)
        self.assertEqual(self.status("--tlsv1.0", "--tls-max", "1.1", *old), 0)

    def test_only_who_shows_a_certificate_of_the_authority_may_read(self):
        self.start(self.tls + f"TLSClientCA={self.files}/ca.pem")
        self.assertEqual(self.status(*self.trust, *self.as_client("client")), 200)
        self.assertEqual(self.status(*self.trust), 403)
        self.assertIn(b"none was shown", self.curl(*self.trust)[1])
        self.assertEqual(self.status(*self.trust, *self.as_client("server")), 403, "a certificate of a server")
        other = Authority(self.files, "other")
        other.sign("stranger", "client")
        self.assertNotEqual(self.status(*self.trust, *self.as_client("stranger")), 200)
        self.ca.sign("past", "client", days=0)
        time.sleep(1)
        code, words = self.curl(*self.trust, *self.as_client("past"))
        self.assertEqual((code, b"expired" in words), (403, True), words)

    def test_a_certificate_and_a_token_are_both_asked_for(self):
        self.start(self.tls + f"TLSClientCA={self.files}/ca.pem\nTokenFile={self.token()}")
        client = (*self.trust, *self.as_client("client"))
        token = self.bearer("right-token-0123456789")
        self.assertEqual(self.status(*client, *token), 200)
        self.assertEqual(self.status(*client), 401)
        self.assertEqual(self.status(*self.trust, *token), 403)

    def test_new_certificates_are_taken_at_a_reload_and_bad_ones_leave_what_was_there(self):
        d = self.start(self.tls)
        before = peer_certificate(self.port)
        with contextlib.closing(http_connection(self.port)):
            self.ca.sign("server", "server")
            d.send(signal.SIGHUP).until_said("reloaded:")
        after = peer_certificate(self.port)
        self.assertNotEqual(before, after)
        self.assertEqual(self.status(*self.trust), 200)
        self.ca.key("server")
        d.send(signal.SIGHUP).until_said("reload: cannot serve metrics with the certificate .*server.pem.*what ran goes on")
        self.assertEqual(self.status(*self.trust), 200)
        self.assertEqual(peer_certificate(self.port), after)

    def test_files_that_cannot_be_used_are_no_start(self):
        self.refused(f"TLSCertificate={self.files}/server.pem", "TLSKey= is not")
        self.refused(f"TLSKey={self.files}/server.key", "TLSCertificate= is not")
        self.refused(f"TLSClientCA={self.files}/ca.pem", "TLSCertificate= is not")
        self.refused(self.tls.replace("server.key", "client.key"), "cannot serve metrics with the certificate")
        self.refused(self.tls + f"TLSClientCA={self.files}/server.key", "cannot take .*server.key for the authority")


def peer_certificate(port):
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=20)


class SlowAndHostile(ScrapeTest):
    def connect(self, receive_buffer=None):
        s = socket.socket()
        self.stack.callback(s.close)
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(60)
        s.connect(("127.0.0.1", self.port))
        return s

    def lives(self, s, each):
        """For how many seconds this connection is kept while each() is done with it twice a second."""
        begin = time.monotonic()
        s.settimeout(0.5)
        while time.monotonic() < begin + 60:
            try:
                if each(s) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        return time.monotonic() - begin

    def test_a_request_that_comes_byte_by_byte_is_ended_after_ten_seconds(self):
        self.start()

        def trickle(s):
            s.send(b"G" if trickle.first else b"E")
            trickle.first = False
            return s.recv(1)

        trickle.first = True
        seconds = self.lives(self.connect(), trickle)
        self.assertGreater(seconds, 9)
        self.assertLess(seconds, 30)

    def test_an_idle_connection_is_ended_after_ten_seconds_also_after_an_answer(self):
        self.start()
        with contextlib.closing(http_connection(self.port)) as c:
            ask(c)
            seconds = self.lives(c.sock, lambda s: s.recv(1))
        self.assertGreater(seconds, 9)
        self.assertLess(seconds, 30)

    def test_an_answer_that_is_read_byte_by_byte_is_ended_after_thirty_seconds(self):
        self.start("Series=full\nPerCPU=yes", fake=("--cpus=1024", "--nodes=4", "--release=6.18"))
        s = self.connect(receive_buffer=4096)
        s.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        begin = time.monotonic()

        def alive():
            # what is still in flight may be read, a byte at a time
            s.settimeout(1)
            s.recv(1)
            return peers_of(self.port) == 0

        wait_until("the answer is ended", lambda: alive() or time.sleep(0.4), 60)
        seconds = time.monotonic() - begin
        self.assertGreater(seconds, 25)
        self.assertLess(seconds, 55)

    def test_a_thousand_peers_that_idle_or_trickle_disturb_neither_local_scrapes_nor_ticks(self):
        d = self.start()
        before = memory(d)
        d.metrics()
        ticks = d.ticks()
        peers = []
        for _ in range(1000):
            s = socket.socket()
            self.stack.callback(s.close)
            s.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                s.connect(("127.0.0.1", self.port))
            peers.append(s)
        for _ in range(5):
            for s in peers[::2]:
                with contextlib.suppress(OSError):
                    s.send(b"G")
            self.assertIn("pcptune_build_info", d.metrics())
            time.sleep(1)
        self.assertGreater(d.ticks(), ticks + 2)
        self.assertLess(memory(d) - before, 16 << 20)

    def test_malformed_requests_disturb_neither_local_scrapes_nor_ticks(self):
        d = self.start()
        before, ticks, begin = memory(d), d.ticks(), time.monotonic()
        garbage = (
            b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\0" * 64,
            b"GET /" + b"a" * 20000,
            b"\x16\x03\x01\x02\0",
            b"GET / HTTP/1.1\r\nHost\r\n\r\n",
            b"POST /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        )
        sent = 0
        while sent < MALFORMED or time.monotonic() < begin + 8:
            with contextlib.suppress(OSError):
                s = socket.socket()
                s.settimeout(20)
                s.connect(("127.0.0.1", self.port))
                s.send(garbage[sent % len(garbage)])
                s.shutdown(socket.SHUT_WR)
                s.close()
            sent += 1
            if sent % 2000 == 0:
                self.assertIn("pcptune_build_info", d.metrics())
        seconds = time.monotonic() - begin
        self.assertGreater(d.ticks(), ticks + seconds / 4)
        self.assertLess(memory(d) - before, 16 << 20)


def peers_of(port):
    """How many connections the server side of `port` has."""
    lines = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return sum(1 for l in lines if l.split()[1].endswith(f":{port:04X}") and l.split()[3] == "01")


def memory(daemon):
    text = pathlib.Path(f"/proc/{daemon.process.pid}/smaps_rollup").read_text(encoding="ascii")
    return int(re.search(r"^Private_Dirty:\s+(\d+) kB", text, re.M).group(1)) << 10


if __name__ == "__main__":
    safety.main()
