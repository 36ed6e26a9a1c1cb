// Command fakecri serves a container runtime that runs nothing, so that a real kubelet starts without one.
//
// Usage: fakecri SOCKET IMAGE_FILESYSTEM
package main

import (
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: fakecri SOCKET IMAGE_FILESYSTEM")
	}
	runtime := fake.NewFakeRemoteRuntime()
	// An image without a size fails every inspection, and without an image filesystem the eviction manager never runs.
	runtime.ImageService.SetFakeImageSize(1 << 20)
	runtime.ImageService.SetFakeFilesystemUsage([]*runtimeapi.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: os.Args[2]},
		UsedBytes:  &runtimeapi.UInt64Value{},
		InodesUsed: &runtimeapi.UInt64Value{},
	}})
	if err := runtime.Start("unix://" + os.Args[1]); err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
}
