#!/bin/sh
# Certificates, routes and settings of experiments/router-service-faults.toml.
#
# Usage: service-faults.sh WORK BACKEND_PORT SERVICE_ADDR DYING_ADDR
set -eu
work=$1
"$HEADROOM" cells certs --out "$work/service" --name service.test
head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/secret"
route() {
    printf '{"uris":["%s.test"],"host":"127.0.0.1","port":%s,"route_service_url":"https://%s/%s"}\n' "$1" "$2" "$3" "$4"
}
{
    for mode in good slow late forged; do
        route "$mode" "$2" "$3" "$mode"
    done
    route dying "$2" "$4" good
} > "$work/routes.json"
cat > "$work/router.toml" <<END
start_delay = "0s"
threads = 1
routes_file = "$work/routes.json"
[route_services]
secret_file = "$work/secret"
timeout = "3s"
recommend_https = false
insecure = true
[backends]
dial_timeout = "1s"
END
echo prepared
# Who is ready has to stay.
exec sleep 1000000
