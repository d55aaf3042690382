module github.com/etcd-operator/etcd-operator/hack/docsite

go 1.26.8

require github.com/yuin/goldmark v1.8.7
