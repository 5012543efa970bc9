// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Seed acts as a user does.
func Seed(c kubernetes.Interface) error {
	fmt.Println("seeding")
	time.Sleep(time.Second) // want sleep
	_, err := c.CoreV1().Pods("").Create(context.Background(), &corev1.Pod{}, metav1.CreateOptions{})
	return err
}
