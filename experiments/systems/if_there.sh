#!/bin/sh
# Runs a command of headroom if the graph with this admin server is there, or says that it
# is not. Usage: if_there.sh ADMIN ARGUMENT...
admin=$1
shift
if python3 -c "import urllib.request; urllib.request.urlopen('http://$admin/ping', timeout=5)" 2>/dev/null; then
    exec "$HEADROOM" "$@"
fi
echo "left out: there is no graph at $admin"
