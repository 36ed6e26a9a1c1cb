// Command kubeletdata prints, as one JSON object, what fake-kubelet has to know of the kubelet that go.mod pins:
// its version, feature gates, flags, the fields of KubeletConfiguration, and the metrics of its cAdvisor.
// `make sync-kubelet` makes the modules of agent/core/kubelet_data from it.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cadvisor/container"
	info "github.com/google/cadvisor/info/v1"
	infov2 "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/component-base/logs/json/register" // the flags of JSON logs
	"k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/kubernetes/cmd/kubelet/app" // the feature gates
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/utils/clock"
)

type data struct {
	Kubernetes     string              `json:"kubernetes"`
	Cadvisor       string              `json:"cadvisor"`
	Gates          map[string]gate     `json:"gates"`
	Dependencies   map[string][]string `json:"dependencies"`
	Structs        map[string][]field  `json:"structs"`
	LegacyDefaults map[string]any      `json:"legacyDefaults"`
	Flags          map[string]flag     `json:"flags"`
	Metrics        map[string]metric   `json:"metrics"`
}

type gate struct {
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
}

type field struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default any    `json:"default"` // null where it is the zero value, or nil
	Always  bool   `json:"always"`  // printed even when empty
}

type flag struct {
	Kind       string `json:"kind"`
	Field      string `json:"field"` // of KubeletConfiguration, a dotted path; empty for a flag without one
	Default    string `json:"default"`
	Deprecated bool   `json:"deprecated"`
}

type metric struct {
	Type string `json:"type"`
	Help string `json:"help"`
}

func main() {
	structs, legacy := configuration()
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	must(out.Encode(data{
		Kubernetes:     moduleVersion("k8s.io/kubernetes"),
		Cadvisor:       moduleVersion("github.com/google/cadvisor"),
		Gates:          gates(),
		Dependencies:   dependencies(),
		Structs:        structs,
		LegacyDefaults: legacy,
		Flags:          flags(),
		Metrics:        cadvisorMetrics(),
	}))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func moduleVersion(path string) string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	panic("this program is built without " + path)
}

func gates() map[string]gate {
	found := map[string]gate{}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		found[string(name)] = gate{string(spec.PreRelease), spec.Default, spec.LockToDefault}
	}
	return found
}

func dependencies() map[string][]string {
	found := map[string][]string{}
	for name, others := range utilfeature.DefaultMutableFeatureGate.Dependencies() {
		for _, other := range slices.Sorted(slices.Values(others)) {
			found[string(name)] = append(found[string(name)], string(other))
		}
	}
	return found
}

// configuration returns the structs below KubeletConfiguration by their Go names, and the defaults that are other
// ones in a kubelet without --config.
func configuration() (map[string][]field, map[string]any) {
	schemes, _, err := scheme.NewSchemeAndCodecs()
	must(err)
	defaulted := &v1beta1.KubeletConfiguration{}
	schemes.Default(defaulted)
	withFile := toVersioned(schemes, toInternal(schemes, defaulted)) // as /configz shows it
	structs := map[string][]field{}
	describe(reflect.ValueOf(*withFile), structs)
	withoutFile, err := options.NewKubeletConfiguration()
	must(err)
	return structs, changes(plain(withFile), plain(toVersioned(schemes, withoutFile)))
}

func toInternal(schemes *runtime.Scheme, from *v1beta1.KubeletConfiguration) *kubeletconfig.KubeletConfiguration {
	internal := &kubeletconfig.KubeletConfiguration{}
	must(schemes.Convert(from, internal, nil))
	return internal
}

func toVersioned(schemes *runtime.Scheme, from *kubeletconfig.KubeletConfiguration) *v1beta1.KubeletConfiguration {
	versioned := &v1beta1.KubeletConfiguration{}
	must(schemes.Convert(from.DeepCopy(), versioned, nil))
	return versioned
}

// describe adds the struct of the value, whose fields have their defaults, and those that it contains.
func describe(value reflect.Value, structs map[string][]field) {
	name := value.Type().String()
	if _, found := structs[name]; found {
		panic(name + " is in two places, whose defaults may differ")
	}
	structs[name] = nil
	for index := range value.NumField() {
		structs[name] = append(structs[name], fieldsOf(value.Type().Field(index), value.Field(index), structs)...)
	}
}

func fieldsOf(declared reflect.StructField, value reflect.Value, structs map[string][]field) []field {
	name, options, _ := strings.Cut(declared.Tag.Get("json"), ",")
	if declared.Anonymous {
		if declared.Name == "TypeMeta" {
			return nil
		}
		var fields []field
		for index := range value.NumField() {
			fields = append(fields, fieldsOf(declared.Type.Field(index), value.Field(index), structs)...)
		}
		return fields
	}
	omitted := strings.Contains(options, "omitempty") && declared.Type.Kind() != reflect.Struct
	described := field{Name: name, Type: typeText(declared.Type), Always: !omitted}
	if inner := structOf(declared.Type); inner == nil {
		if !value.IsZero() {
			described.Default = plain(value.Interface())
		}
	} else if value.Kind() == reflect.Struct {
		describe(value, structs)
	} else {
		describe(reflect.Zero(inner), structs)
	}
	return []field{described}
}

// decoded are the types, beside strings and structs of them, that agent/adapters/settings/go_json.py decodes.
var decoded = []string{
	"bool", "int32", "int64", "float64", "v1.Duration", "v1.Time", "v1.TimeOrMetaDuration", "v1.VerbosityLevel",
	"resource.Quantity", "resource.QuantityValue",
}

// typeText returns the name of a type, with the elements of lists and maps that have a name of their own.
func typeText(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return "*" + typeText(of.Elem())
	case reflect.Slice:
		return "[]" + typeText(of.Elem())
	case reflect.Map:
		return "map[string]" + typeText(of.Elem())
	case reflect.String:
		return of.String()
	default:
		if structOf(of) == nil && !slices.Contains(decoded, of.String()) {
			panic("no kind is known for " + of.String())
		}
		return of.String()
	}
}

// structOf returns the struct that a field holds, points to or lists; nil for a scalar or what prints itself.
func structOf(held reflect.Type) reflect.Type {
	for held.Kind() == reflect.Pointer || held.Kind() == reflect.Slice {
		held = held.Elem()
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	if held.Kind() != reflect.Struct || held.Implements(marshaler) || reflect.PointerTo(held).Implements(marshaler) {
		return nil
	}
	return held
}

// plain returns the value as JSON says it.
func plain(value any) (found any) {
	text, err := json.Marshal(value)
	must(err)
	must(json.Unmarshal(text, &found))
	return found
}

// changes returns the dotted paths at which the second value has another one than the first, with that.
func changes(before, after any) map[string]any {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	old, wasObject := before.(map[string]any)
	object, isObject := after.(map[string]any)
	if !wasObject || !isObject {
		return map[string]any{"": after}
	}
	found := map[string]any{}
	for name, value := range object {
		for path, change := range changes(old[name], value) {
			found[strings.TrimSuffix(name+"."+path, ".")] = change
		}
	}
	return found
}

func flags() map[string]flag {
	// kubelet v1.36: app.NewKubeletCommand
	set, found := pflag.NewFlagSet("", pflag.ContinueOnError), map[string]flag{}
	options.NewKubeletFlags().AddFlags(set)
	options.AddGlobalFlags(set)
	set.BoolP("help", "h", false, "")
	set.VisitAll(func(each *pflag.Flag) {
		found[each.Name] = flag{Kind: kind(each), Default: defaultOf(each), Deprecated: each.Deprecated != ""}
	})
	configFlags(&kubeletconfig.KubeletConfiguration{}).VisitAll(func(each *pflag.Flag) {
		found[each.Name] = flag{Kind: kind(each), Field: fieldOf(each.Name), Deprecated: each.Deprecated != ""}
	})
	return found
}

func configFlags(config *kubeletconfig.KubeletConfiguration) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddKubeletConfigFlags(set, config)
	return set
}

// defaultOf returns the default of a flag, empty for the zero value.
func defaultOf(flag *pflag.Flag) string {
	if slices.Contains([]string{"false", "0", "0s", "[]"}, flag.DefValue) {
		return ""
	}
	return flag.DefValue
}

// fieldOf returns the field of KubeletConfiguration that changes with a flag.
func fieldOf(name string) string {
	schemes, _, err := scheme.NewSchemeAndCodecs()
	must(err)
	config := toInternal(schemes, &v1beta1.KubeletConfiguration{})
	flag := configFlags(config).Lookup(name)
	before := plain(toVersioned(schemes, config))
	must(flag.Value.Set(another(flag)))
	paths := slices.Collect(maps.Keys(changes(before, plain(toVersioned(schemes, config)))))
	if len(paths) != 1 {
		panic(fmt.Sprintf("--%s sets %v", name, paths))
	}
	return paths[0]
}

// kind returns the name that agent/adapters/settings/pflag.py has for the type of a flag.
func kind(of *pflag.Flag) string {
	switch value := of.Value.(type) {
	case *cliflag.MapStringString:
		if value.NoSplit {
			return "pair"
		}
		return "map"
	case *cliflag.ConfigurationMap:
		return "labels"
	case *cliflag.MapStringBool, featuregate.MutableFeatureGate:
		return "gates"
	case *cliflag.LangleSeparatedMapStringString:
		return "thresholds"
	case *cliflag.ColonSeparatedMultimapStringString:
		return "headers"
	}
	switch name := of.Value.Type(); name {
	case "stringSlice":
		return "strings"
	case "int":
		return "int64"
	case "[]v1.Taint", "[]api.Taint", "[]core.Taint":
		return "taints"
	case "Level":
		return "level"
	case "pattern=N,...":
		return "vmodule"
	default:
		return name
	}
}

// another returns a text that gives a flag another value than its default.
func another(of *pflag.Flag) string {
	switch kind(of) {
	case "bool":
		return strconv.FormatBool(of.DefValue != "true")
	case "int32", "int64", "level":
		return "7"
	case "duration":
		return "7s"
	case "ip":
		return "192.0.2.7"
	case "map", "pair":
		return "a=b"
	case "gates":
		return "AllAlpha=false"
	case "thresholds":
		return "memory.available<7Mi"
	case "headers":
		return "a:b"
	case "taints":
		return "a=b:NoSchedule"
	case "reserved-memory":
		return "0:memory=7Mi"
	case "vmodule":
		return "a=7"
	case "quantity":
		return "7Ki"
	default:
		return "another"
	}
}

// nothing is the machine that cAdvisor's collectors ask: one container with every limit, and no figures.
type nothing struct{}

func (nothing) GetRequestedContainersInfo(string, infov2.RequestOptions) (map[string]*info.ContainerInfo, error) {
	spec := info.ContainerSpec{HasCpu: true, HasMemory: true, Cpu: info.CpuSpec{Quota: 1}}
	return map[string]*info.ContainerInfo{"/": {Spec: spec}}, nil
}

func (nothing) GetVersionInfo() (*info.VersionInfo, error) { return &info.VersionInfo{}, nil }

func (nothing) GetMachineInfo() (*info.MachineInfo, error) { return &info.MachineInfo{}, nil }

// cadvisorMetrics returns what the kubelet's /metrics/cadvisor can show.
func cadvisorMetrics() map[string]metric {
	// kubelet v1.36: server.InstallAuthNotRequiredHandlers
	included := container.MetricSet{}
	for _, one := range []container.MetricKind{
		container.CpuUsageMetrics, container.MemoryUsageMetrics, container.CpuLoadMetrics, container.DiskIOMetrics,
		container.DiskUsageMetrics, container.NetworkUsageMetrics, container.AppMetrics, container.ProcessMetrics,
		container.OOMMetrics, container.PressureMetrics,
	} {
		included[one] = struct{}{}
	}
	labels := func(*info.ContainerInfo) map[string]string { return nil }
	containers := metrics.NewPrometheusCollector(nothing{}, labels, included, clock.RealClock{}, infov2.RequestOptions{})
	machine := metrics.NewPrometheusMachineCollector(nothing{}, included)
	found := map[string]metric{}
	listed(containers, "containerMetrics", found)
	listed(machine, "machineMetrics", found)
	registry := prometheus.NewRegistry()
	registry.MustRegister(containers, machine)
	families, err := registry.Gather() // has what is in no list: limits, errors, the version
	must(err)
	for _, family := range families {
		found[family.GetName()] = metric{typeName(family.GetType()), family.GetHelp()}
	}
	return found
}

// listed adds the metrics that a collector has in a list of its own.
func listed(collector any, list string, found map[string]metric) {
	rows := reflect.ValueOf(collector).Elem().FieldByName(list)
	for index := range rows.Len() {
		row := rows.Index(index)
		kind := prometheus.ValueType(row.FieldByName("valueType").Int())
		found[row.FieldByName("name").String()] = metric{typeName(*kind.ToDTO()), row.FieldByName("help").String()}
	}
}

func typeName(kind dto.MetricType) string { return strings.ToLower(kind.String()) }
