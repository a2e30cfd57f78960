# Programs that judge weir in `make soak`: those whose files are imported, which play the same files, and others of gRPC and
# WebSocket. A part of setup.sh, which has from_npm, has, add, say and the stamps; a test without its program is skipped.

from_go() { # FOLDER MODULE@VERSION...
    local folder=$1 module
    shift
    if ! is_done "$folder" "$*"; then
        for module in "$@"; do
            say "installing $module"
            if ! { has go && GOBIN="$PWD/.venv/$folder/bin" go install "$module" </dev/null; }; then
                say "without $module, which could not be installed: its test is skipped"
                return
            fi
        done
        stamp "$folder" "$*"
    fi
}

# Tools whose files are imported, which play the same files as weir; and other programs of gRPC.
judges() {
    from_go go google.golang.org/grpc/interop/server@v1.85.0 github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4 \
        github.com/bojand/ghz/cmd/ghz@v0.93.0
    local wsproto=wsproto==1.3.2
    if ! is_done wsproto "$wsproto"; then
        say "installing $wsproto"
        add "$wsproto" && stamp wsproto "$wsproto"
    fi
    local jmeter=us.abstracta.jmeter:jmeter-java-dsl:1.29.1
    from_npm newman newman@6.2.2
    if ! is_done jmeter "$jmeter"; then
        say "installing $jmeter"
        if has mvn && jmeter_libraries "$jmeter"; then
            stamp jmeter "$jmeter"
        else
            say "without $jmeter, which could not be installed: its test is skipped"
        fi
    fi
}

# Libraries of an artifact, with all that it needs.
jmeter_libraries() {
    local group artifact version
    IFS=: read -r group artifact version <<<"$1"
    mkdir -p .venv/jmeter
    cat >.venv/jmeter/pom.xml <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>judges</groupId><artifactId>judges</artifactId><version>1</version><dependencies><dependency>
<groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency></dependencies></project>
POM
    (cd .venv/jmeter && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib </dev/null)
}
