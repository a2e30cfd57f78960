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
    from_npm newman newman@6.2.2
    from_maven jmeter us.abstracta.jmeter:jmeter-java-dsl:1.29.1
    from_maven grpc-java io.grpc:{grpc-netty-shaded,grpc-services,grpc-stub}:1.85.1
}

# Libraries of artifacts, with all that these need to run.
from_maven() { # FOLDER GROUP:ARTIFACT:VERSION...
    local folder=$1
    shift
    if ! is_done "$folder" "$*"; then
        say "installing $*"
        if has mvn && java_libraries "$folder" "$@"; then
            stamp "$folder" "$*"
        else
            say "without $*, which could not be installed: its test is skipped"
        fi
    fi
}

java_libraries() {
    local folder=$1 each group artifact version needs=
    shift
    for each in "$@"; do
        IFS=: read -r group artifact version <<<"$each"
        needs+="<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
    done
    mkdir -p ".venv/$folder"
    cat >".venv/$folder/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>judges</groupId><artifactId>judges</artifactId><version>1</version><dependencies>$needs</dependencies></project>
POM
    (cd ".venv/$folder" && mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=lib </dev/null)
}
