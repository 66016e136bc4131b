# Two stages: the toolchain builds, a small image runs. There is no Docker engine where this was written: each step was
# run by hand instead (docs/deployment.md says how).
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package mcp-filesystem

FROM debian:bookworm-slim
# A user of its own, with nothing but the directory it serves.
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin agent \
    && install --directory --owner=agent --group=agent --mode=0750 /data/workspace
COPY --from=build /src/target/release/mcp-filesystem /usr/local/bin/mcp-filesystem
COPY --chmod=0644 config/docker.yaml /etc/mcp-filesystem.yaml
# Also what `health` reads, to know where to ask.
ENV MCP_FILESYSTEM_CONFIG=/etc/mcp-filesystem.yaml
USER 10001:10001
EXPOSE 8091
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s CMD ["mcp-filesystem", "health"]
# Nothing is written outside the roots: run it with --read-only --cap-drop ALL --security-opt no-new-privileges.
ENTRYPOINT ["mcp-filesystem"]
