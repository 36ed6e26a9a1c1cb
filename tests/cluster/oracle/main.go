// Command oracle answers, one line for each line it reads, what Kubernetes' own Go code makes of quantities.
//
//	parse TEXT            → CANONICAL VALUE MILLIVALUE, or "error"
//	minus LEFT RIGHT      → CANONICAL
//	share CAPACITY TEXT   → bytes that an eviction threshold TEXT takes of a capacity
//	duration TEXT         → NANOSECONDS CANONICAL, or "error"
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		fmt.Fprintln(out, answer(words[0], words[1:]))
	}
}

func answer(question string, words []string) string {
	switch question {
	case "parse":
		quantity, err := resource.ParseQuantity(words[0])
		if err != nil {
			return "error"
		}
		quantity.Add(resource.Quantity{}) // drops the remembered spelling
		return fmt.Sprint(canonical(quantity), " ", quantity.Value(), " ", quantity.MilliValue())
	case "minus":
		left, right := resource.MustParse(words[0]), resource.MustParse(words[1])
		left.Sub(right)
		return canonical(left)
	case "share":
		return share(words[0], words[1])
	case "duration":
		duration, err := time.ParseDuration(words[0])
		if err != nil {
			return "error"
		}
		return fmt.Sprint(duration.Nanoseconds(), " ", duration)
	}
	return "unknown question"
}

func canonical(quantity resource.Quantity) string {
	number, suffix := quantity.CanonicalizeBytes(nil)
	return string(number) + string(suffix)
}

func share(capacity, threshold string) string {
	total, err := strconv.ParseInt(capacity, 10, 64)
	if err != nil {
		return "error"
	}
	thresholds, err := eviction.ParseThresholdConfig(nil, map[string]string{"memory.available": threshold}, nil, nil, nil)
	if err != nil || len(thresholds) != 1 {
		return "error"
	}
	value := evictionapi.GetThresholdQuantity(thresholds[0].Value, resource.NewQuantity(total, resource.BinarySI))
	return strconv.FormatInt(value.Value(), 10)
}
