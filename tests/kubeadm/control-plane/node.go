package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap"
	"sigs.k8s.io/yaml"
)

const (
	manifests     = "/etc/kubernetes/manifests"
	kubeconfig    = "/etc/kubernetes/kubelet.conf"
	bootstrapping = "/etc/kubernetes/bootstrap-kubelet.conf"
	certificates  = "/var/lib/kubelet/pki"
	flags         = "/var/lib/kubelet/kubeadm-flags.env"
	period        = 300 * time.Millisecond
	heartbeat     = 5 * time.Second
)

var (
	taintsFlag = regexp.MustCompile(`--register-with-taints=([^ "]+)`)
	labelsFlag = regexp.MustCompile(`--node-labels=([^ "]+)`)
)

// A static pod that runs as a process of this container.
type process struct {
	pod      corev1.Pod
	manifest string
	command  *exec.Cmd
	ended    chan struct{}
}

// node does what a kubelet does for a control plane, and nothing else: runs static pods (as processes), registers the Node,
// gets its certificate by a signing request where it has to, keeps mirror pods, answers health checks and port-forwards.
func node() {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	name, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	serve(name)
	running := map[string]*process{}
	for stop.Err() == nil {
		run(running)
		if client := connect(stop, name); client != nil {
			if err := report(stop, client, name, running); err != nil {
				log.Print(err)
			}
		}
		select {
		case <-stop.Done():
		case <-time.After(period):
		}
	}
}

// run starts what the manifests say, again when one changes or its process ends, and stops what has no manifest any more.
func run(running map[string]*process) {
	files, _ := filepath.Glob(manifests + "/*.yaml")
	wanted := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var pod corev1.Pod
		if err != nil || yaml.Unmarshal(text, &pod) != nil || len(pod.Spec.Containers) != 1 {
			continue
		}
		wanted[pod.Name] = true
		if known := running[pod.Name]; known != nil {
			if known.manifest == string(text) && known.alive() {
				continue
			}
			known.end()
		}
		started, err := start(pod, string(text))
		if err != nil {
			log.Print(err)
			continue
		}
		running[pod.Name] = started
	}
	for name, process := range running {
		if !wanted[name] {
			process.end()
			delete(running, name)
		}
	}
}

func start(pod corev1.Pod, manifest string) (*process, error) {
	container := pod.Spec.Containers[0]
	arguments := append(container.Command, container.Args...)
	output, err := os.OpenFile("/var/log/"+pod.Name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	command := exec.Command("/opt/capwasm/"+arguments[0], arguments[1:]...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &process{pod: pod, manifest: manifest, command: command, ended: make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(started.ended)
	}()
	return started, nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) end() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

// connect is nil as long as there are no credentials with which to connect.
func connect(ctx context.Context, name string) kubernetes.Interface {
	if _, err := os.Stat(kubeconfig); err != nil {
		if _, err := os.Stat(bootstrapping); err != nil {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := bootstrap.LoadClientCert(limited, kubeconfig, bootstrapping, certificates, types.NodeName(name)); err != nil {
			log.Print(err)
			return nil
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil
	}
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	return client
}

// report keeps the Node and the mirror pods as they should be.
func report(ctx context.Context, client kubernetes.Interface, name string, running map[string]*process) error {
	nodes := client.CoreV1().Nodes()
	found, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		found, err = nodes.Create(ctx, registration(name), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if !fresh(found) {
		found.Status = status()
		if _, err := nodes.UpdateStatus(ctx, found, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	// A node may list its own pods, and get only those of which the authorizer has heard.
	pods := client.CoreV1().Pods("kube-system")
	listed, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return err
	}
	there := map[string]*corev1.Pod{}
	for i := range listed.Items {
		there[listed.Items[i].Name] = &listed.Items[i]
	}
	for _, process := range running {
		mirror := process.pod.DeepCopy()
		mirror.Name += "-" + name
		known := there[mirror.Name]
		if known == nil {
			controller := true
			mirror.Spec.NodeName = name
			mirror.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: found.UID, Controller: &controller}}
			if mirror.Annotations == nil {
				mirror.Annotations = map[string]string{}
			}
			mirror.Annotations[corev1.MirrorPodAnnotationKey] = mirror.Name
			mirror.Annotations["kubernetes.io/config.source"] = "file"
			if known, err = pods.Create(ctx, mirror, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		ready := process.alive()
		if len(known.Status.Conditions) > 0 && (known.Status.ContainerStatuses[0].Ready == ready) {
			continue
		}
		known.Status = podStatus(known, ready)
		if _, err := pods.UpdateStatus(ctx, known, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func registration(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	text, _ := os.ReadFile(flags)
	if found := labelsFlag.FindSubmatch(text); found != nil {
		for _, label := range strings.Split(string(found[1]), ",") {
			key, value, _ := strings.Cut(label, "=")
			node.Labels[key] = value
		}
	}
	if found := taintsFlag.FindSubmatch(text); found != nil {
		for _, taint := range strings.Split(string(found[1]), ",") {
			taint, effect, _ := strings.Cut(taint, ":")
			key, value, _ := strings.Cut(taint, "=")
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	node.Status = status()
	return node
}

// fresh is whether the last heartbeat is young enough.
func fresh(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return time.Since(condition.LastHeartbeatTime.Time) < heartbeat
		}
	}
	return false
}

func status() corev1.NodeStatus {
	now := metav1.Now()
	conditions := []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "stand-in for a kubelet",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	for _, pressure := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		conditions = append(conditions, corev1.NodeCondition{
			Type: pressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	return corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address()}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		NodeInfo:        corev1.NodeSystemInfo{KubeletVersion: version.Get().GitVersion, OperatingSystem: "linux", Architecture: "amd64"},
		Conditions:      conditions,
	}
}

func podStatus(pod *corev1.Pod, ready bool) corev1.PodStatus {
	now, condition := metav1.Now(), corev1.ConditionFalse
	if ready {
		condition = corev1.ConditionTrue
	}
	status := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: address(), PodIP: address(), StartTime: &now}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: condition, LastTransitionTime: now})
	}
	container := pod.Spec.Containers[0]
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, Ready: ready,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	return status
}

func address() string {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && !network.IP.IsLoopback() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return "127.0.0.1"
}

// serve answers the health checks of kubeadm and the port-forwards of the API server.
func serve(name string) {
	health := http.NewServeMux()
	health.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:10248", health)) }()
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	for file, content := range map[string][]byte{"/run/serving.crt": certificate, "/run/serving.key": key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	api := http.NewServeMux()
	api.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, request *http.Request) {
		stream(w, request, request.PathValue("pod"))
	})
	api.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]string{"unserved": request.URL.Path})
	})
	go func() { log.Fatal(http.ListenAndServeTLS(":10250", "/run/serving.crt", "/run/serving.key", api)) }()
}

type forwarder struct{}

// Static pods are on the host's network, so every pod's port is this container's.
func (forwarder) PortForward(_ context.Context, _ string, _ uid, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	connection, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer connection.Close()
	done := make(chan struct{}, 2)
	pump := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pump(connection, stream)
	go pump(stream, connection)
	<-done
	return nil
}
