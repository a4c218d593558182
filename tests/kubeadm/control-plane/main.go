// The real parts of a control plane in one program, which is what it is called by: kubeadm, etcd, kube-apiserver,
// kube-controller-manager or kube-scheduler. Linked once, because each of them alone is most of all of them. Called "node", it
// stands in for the kubelet: see node.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "kubeadm":
		if err := kubeadm.Run(); err != nil {
			os.Exit(1)
		}
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "node":
		node()
	default:
		fmt.Fprintf(os.Stderr, "%s: this program has to be called by the name of what it should be\n", name)
		os.Exit(64)
	}
}
