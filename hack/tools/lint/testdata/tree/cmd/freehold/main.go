// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	_ "sigs.k8s.io/controller-runtime/pkg/client" // want depguard:everywhere

	_ "github.com/freehold-dev/freehold/hack/cluster" // want depguard:operator
	_ "github.com/freehold-dev/freehold/pkg/controller"
	_ "github.com/freehold-dev/freehold/test/suite" // want depguard:operator
)

func main() {
	fmt.Println(os.Args, time.Now())
	time.Sleep(time.Second) // want sleep
	_ = write(context.Background(), nil)
}

func write(ctx context.Context, c kubernetes.Interface) error {
	return c.CoreV1().Pods("").Delete(ctx, "", metav1.DeleteOptions{}) // want write write
}
