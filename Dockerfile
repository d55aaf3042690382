# The operator's image, for those who have a container engine:
#   docker build -t etcd-operator/etcd-operator:v1.0.0 .
# hack/image builds the same without one.

FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG VERSION=v1.0.0-dev
ARG GIT_SHA=unknown
RUN version=github.com/etcd-operator/etcd-operator/internal/version && \
    mkdir /out && \
    for dir in cmd/*; do \
      case $dir in cmd/operator) name=etcd-operator ;; *) name=etcd-${dir#cmd/} ;; esac && \
      CGO_ENABLED=0 go build -trimpath -buildvcs=false \
        -ldflags "-s -w -X $version.Version=$VERSION -X $version.GitSHA=$GIT_SHA" -o "/out/$name" "./$dir" || exit 1; \
    done

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/ /usr/local/bin/
COPY LICENSE /usr/share/doc/etcd-operator/LICENSE
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT []
CMD ["/usr/local/bin/etcd-operator"]
