# What can be done here. `just ci` is exactly what the checks run.

# List the recipes.
default:
    @just --list

# Build the released binary.
build:
    cargo build --release

# Run all tests.
test:
    cargo test --workspace

# Show the whole lifecycle in a throwaway repository.
demo:
    cargo run --release -- demo

# Measure the budgets beside their floors, on an otherwise idle machine.
bench *arguments:
    cargo build --release --package majordomus-cli --package majordomus-benches
    cargo run --release --package majordomus-benches --bin majordomus-benches -- {{arguments}}

# Run more simulations, with fresh seeds; `just soak 1000 7` runs the thousand from seed 7 on.
soak *arguments:
    cargo run --package majordomus-simulation --bin soak -- {{arguments}}

# Run real agent CLIs offline and hold the records against what happened; `just clients claude quit` one of them.
clients *arguments:
    cargo run --package majordomus-clients -- {{arguments}}

# Run the protocol's conformance suite against the released binary and the fixture; `just conformance fixture` one of them.
conformance *arguments:
    cargo run --package majordomus-conformance -- {{arguments}}

# Write docs/reference from the registry and the command line.
generate:
    cargo run --release -- generate

# Rewrite the snapshots of what clients see, to be read before they are committed.
snapshots:
    INSTA_UPDATE=always cargo test --package majordomus-capability

# Everything that has to be green before a change lands.
ci:
    .ci/run
