# The operators' image, for those who have a container engine. hack/image builds
# the same one without: keep the two alike.
#
#   docker build -t docker.io/etcd-operator/etcd-operator:v1.0.0 \
#     --build-arg VERSION=v1.0.0 --build-arg GIT_SHA="$(git rev-parse --short=12 HEAD)" .

FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
ARG TARGETARCH
ARG VERSION=v1.0.0-dev
ARG GIT_SHA=unknown
ENV CGO_ENABLED=0
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
COPY LICENSE LICENSE
# Each program below cmd gets the name that it has in the image.
RUN set -eu; \
    for dir in cmd/*/; do \
      case "$dir" in \
        cmd/operator/) name=etcd-operator ;; \
        cmd/launcher/) name=etcd-launcher ;; \
        cmd/backup-operator/) name=etcd-backup-operator ;; \
        cmd/restore-operator/) name=etcd-restore-operator ;; \
        *) continue ;; \
      esac; \
      GOOS=linux GOARCH="$TARGETARCH" go build -trimpath -buildvcs=false \
        -ldflags "-s -w -X github.com/etcd-operator/etcd-operator/internal/version.Version=$VERSION -X github.com/etcd-operator/etcd-operator/internal/version.GitSHA=$GIT_SHA" \
        -o "/image/usr/local/bin/$name" "./$dir"; \
    done; \
    install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt; \
    install -D -m 0644 LICENSE /image/usr/share/doc/etcd-operator/LICENSE; \
    printf 'root:x:0:0:root:/root:/sbin/nologin\netcd-operator:x:65532:65532:etcd-operator:/:/sbin/nologin\n' >/image/etc/passwd; \
    printf 'root:x:0:\netcd-operator:x:65532:\n' >/image/etc/group; \
    printf 'hosts: files dns\n' >/image/etc/nsswitch.conf; \
    install -d -m 1777 /image/tmp

FROM scratch
ARG VERSION=v1.0.0-dev
ARG GIT_SHA=unknown
LABEL org.opencontainers.image.title="etcd-operator" \
      org.opencontainers.image.description="Operates etcd clusters on Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$GIT_SHA"
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY --from=build /image/ /
USER 65532:65532
CMD ["/usr/local/bin/etcd-operator"]
