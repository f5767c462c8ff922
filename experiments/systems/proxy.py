"""Starts nginx, HAProxy or Caddy as a plain reverse proxy with kept connections and no log, or
gorouter with routes from NATS and its access log.

Usage: proxy.py nginx|haproxy|caddy --listen ADDR --backend ADDR --work FOLDER
       proxy.py gorouter … --nats ADDR --status PORT --routes PORT
"""

import argparse
import os
import shutil
import sys

NGINX = """
worker_processes 1; daemon off; pid {own}/pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
    access_log off; tcp_nodelay on; keepalive_requests 1000000000; keepalive_timeout 1h;
    client_body_temp_path {own}/t1; proxy_temp_path {own}/t2;
    fastcgi_temp_path {own}/t3; uwsgi_temp_path {own}/t4; scgi_temp_path {own}/t5;
    upstream backend {{ server {backend}; keepalive 1024; keepalive_requests 1000000000; }}
    server {{
        listen {listen} backlog=4096;
        location / {{
            proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}
"""

HAPROXY = """
global
 nbthread 1
 maxconn 8192
defaults
 mode http
 option http-keep-alive
 option forwardfor
 http-reuse always
 timeout connect 5s
 timeout client 1h
 timeout server 1h
frontend f
 bind {listen}
 default_backend b
backend b
 server s {backend}
"""

CADDY = """
{{
    admin off
    auto_https off
    persist_config off
    log default {{
        level ERROR
    }}
}}
http://:{port} {{
    bind {host}
    reverse_proxy {backend} {{
        transport http {{
            keepalive_idle_conns 1024
            keepalive_idle_conns_per_host 1024
        }}
    }}
}}
"""

GOROUTER = """
port: {port}
index: 0
go_max_procs: 1
enable_http2: false
disable_keep_alives: false
max_idle_conns: 1024
max_idle_conns_per_host: 1024
start_response_delay_interval: 0s
send_http_start_stop_server_event: false
send_http_start_stop_client_event: false
access_log:
  file: {own}/access.log
logging:
  level: error
  metron_address: 127.0.0.1:9
status:
  host: 127.0.0.1
  port: {status}
  user: operator
  pass: operator
  routes:
    port: {routes}
nats:
  hosts:
  - hostname: {nats_host}
    port: {nats_port}
"""

TEMPLATES = {"nginx": NGINX, "haproxy": HAPROXY, "caddy": CADDY, "gorouter": GOROUTER}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=tuple(TEMPLATES))
    for flag in ("--listen", "--backend", "--work"):
        parser.add_argument(flag, required=True)
    for flag in ("--nats", "--status", "--routes"):
        parser.add_argument(flag, default="")
    options = parser.parse_args()
    # Debian puts servers where only root's PATH looks.
    program = shutil.which(options.program, path=os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin")
    if program is None:
        sys.exit(f"proxy.py: {options.program} is not installed")
    own = os.path.join(options.work, options.program)
    os.makedirs(own, exist_ok=True)
    config = os.path.join(own, "config")
    host, _, port = options.listen.rpartition(":")
    nats_host, _, nats_port = options.nats.rpartition(":")
    with open(config, "w") as file:
        file.write(
            TEMPLATES[options.program].format(
                own=own,
                listen=options.listen,
                host=host,
                port=port,
                backend=options.backend,
                nats_host=nats_host,
                nats_port=nats_port,
                status=options.status,
                routes=options.routes,
            )
        )
    # nginx's worker drops root's rights and must still reach its folder.
    os.chmod(own, 0o777)
    # Caddy keeps things at home, Go's servers take every processor that they may.
    os.environ.update(HOME=own, XDG_DATA_HOME=own, XDG_CONFIG_HOME=own, GOMAXPROCS="1")
    arguments = {
        "nginx": ["-c", config, "-e", "stderr"],
        "haproxy": ["-db", "-f", config],
        "caddy": ["run", "--adapter", "caddyfile", "--config", config],
        "gorouter": ["-c", config],
    }[options.program]
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
