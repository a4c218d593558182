package main

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
)

// As this version's streaming library names a pod's UID.
type uid = types.UID

// stream serves a port-forward of a pod.
func stream(w http.ResponseWriter, request *http.Request, pod string) {
	options, err := portforward.NewV4Options(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, request, forwarder{}, pod, "", options, time.Hour, time.Minute, portforward.SupportedProtocols)
}
