# A small image with the static binary and nothing else:
#   docker build -t headroom . && docker run --rm headroom --version
# The steps are scripts; `make dist` runs and tests them without an engine.
FROM node:20-slim AS pages
WORKDIR /src/web
COPY web .
RUN npm ci --no-audit --no-fund && npm run build

FROM rust:1.95-slim AS program
WORKDIR /src
COPY . .
COPY --from=pages /src/web/dist web/dist
RUN scripts/build-static /out/headroom && mkdir /out/tmp

FROM scratch
COPY --from=program /out /
WORKDIR /work
ENTRYPOINT ["/headroom"]
