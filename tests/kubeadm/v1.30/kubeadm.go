// Package kubeadm pins the real kubeadm that judges what the bootstrap provider writes.
package kubeadm

import _ "k8s.io/kubernetes/cmd/kubeadm/app"
