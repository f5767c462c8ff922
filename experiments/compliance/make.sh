#!/bin/sh
# Writes a folder of policies as a large installation has them: every node gets DIRECTIVES of
# COMPONENTS each, and one more with a property of the node as its value. Three of five values
# have variables and differ from node to node, one of five is computed. The group `one` holds the
# node hollow-0, gives it another property, and a directive of VALUE that nobody else has; a
# further directive is of the nodes with SYSTEM.
# Usage: make.sh FOLDER DIRECTIVES COMPONENTS [VALUE [RELEASE [SYSTEM]]]
set -eu
folder=$1 directives=$2 components=$3 value=${4:-first} release=${5:-1} system=${6:-Debian}
mkdir -p "$folder/techniques" "$folder/directives" "$folder/rules" "$folder/groups"

technique() { # NAME COMPONENTS
    awk -v name="$1" -v components="$2" 'BEGIN {
        print "params:\n  - name: volume\nitems:"
        for (call = 0; call < components; call++) {
            host = "${rudder.node.hostname}"
            path = call % 5 == 0 ? "/etc/app/" host "/conf-" call ".d/main.conf" \
                 : call % 5 == 1 ? "/srv/${rudder.param.pool}/${rudder.node.id}/" call \
                 : call % 5 == 2 ? "/etc/common/part-" call "/settings.conf" \
                 : call % 5 == 3 ? "eval: \047/var/lib/" call "/\047 + lower(" host ") + \047/\047 + spread(${rudder.node.id}, 60)" \
                 : "/mnt/${t" name ".volume}/${rudder.node.id}/" call
            print "  - name: Lines of part " call "\n    method: file_lines_present\n    params:"
            print "      path: \"" path "\"\n      lines: \"server ${rudder.node.id} # ${t" name ".volume}\""
        }
    }' >"$folder/techniques/t$1.yml"
}

directive() { # ID TECHNIQUE VOLUME
    printf 'technique: t%s\nparams:\n  volume: "%s"\n' "$2" "$3" >"$folder/directives/$1.yml"
}

printf 'pool: pool-a\nrelease: "0"\n' >"$folder/parameters.yml"
all=
for number in $(seq "$directives"); do
    technique "$number" "$components"
    directive "d$number" "$number" "volume-$number"
    all="$all${all:+, }d$number"
done
for other in alone released extra; do
    technique "$other" "$components"
done
directive alone alone "$value"
# shellcheck disable=SC2016 # the server fills this in
directive released released '${node.properties[release]}'
directive extra extra extra
printf 'directives: [%s, released]\ntargets: [special:all]\n' "$all" >"$folder/rules/all.yml"
printf 'directives: [alone]\ntargets: [group:one]\n' >"$folder/rules/one.yml"
printf 'directives: [extra]\ntargets: [group:system]\n' >"$folder/rules/system.yml"
query() { # GROUP ATTRIBUTE VALUE
    printf 'query: {where: [{objectType: node, attribute: %s, comparator: eq, value: %s}]}\n' \
        "$2" "$3" >"$folder/groups/$1.yml"
}
query one nodeHostname hollow-0.example.org
printf 'properties: {release: "%s"}\n' "$release" >>"$folder/groups/one.yml"
query system osName "$system"
echo "written to $folder"
