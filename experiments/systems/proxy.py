"""Starts nginx or HAProxy as a plain reverse proxy with kept connections and no log.

Usage: proxy.py nginx|haproxy --listen ADDR --backend ADDR --work FOLDER
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=("nginx", "haproxy"))
    for flag in ("--listen", "--backend", "--work"):
        parser.add_argument(flag, required=True)
    options = parser.parse_args()
    # Debian puts servers where only root's PATH looks.
    program = shutil.which(options.program, path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        sys.exit(f"proxy.py: {options.program} is not installed; apt-get install {options.program}")
    own = os.path.join(options.work, options.program)
    os.makedirs(own, exist_ok=True)
    config = os.path.join(own, "config")
    template = NGINX if options.program == "nginx" else HAPROXY
    with open(config, "w") as file:
        file.write(template.format(own=own, listen=options.listen, backend=options.backend))
    # nginx's worker drops root's rights and must still reach its folder.
    os.chmod(own, 0o777)
    arguments = ["-c", config, "-e", "stderr"] if options.program == "nginx" else ["-db", "-f", config]
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
