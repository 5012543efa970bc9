// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Once reports whether the operation is tried once: a script waits by itself. Others are tried until they pass.
func (o *Operation) Once() bool { return o.script != "" }

// Try carries out the operation in an environment where a shell finds kubectl and its cluster. The namespace of objects without one is that
// of kubectl.
func (o *Operation) Try(ctx context.Context, environment []string) error {
	environment = slices.Clone(environment)
	for _, variable := range o.environment {
		text, err := evaluate(variable.Value, nil, o.bindings)
		if err != nil {
			return err
		}
		environment = append(environment, fmt.Sprintf("%s=%v", variable.Name, text))
	}
	if o.script != "" {
		_, err := shell(ctx, environment, o.script, nil)
		return err
	}
	for _, object := range o.apply {
		if err := o.tryApply(ctx, environment, object); err != nil {
			return err
		}
	}
	for _, object := range o.assert {
		if err := o.tryAssert(ctx, environment, object); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operation) tryApply(ctx context.Context, environment []string, object map[string]any) error {
	filled, err := fill(object, o.bindings)
	if err != nil {
		return err
	}
	_, refused := shell(ctx, environment, "kubectl apply -f -", filled)
	if len(o.checks) == 0 {
		return refused
	}
	// Chainsaw's $error is a text, or null.
	bindings := o.bindings.Register("$error", nil)
	if refused != nil {
		bindings = bindings.Register("$error", refused.Error())
	}
	var errs []error
	for _, check := range o.checks {
		errs = append(errs, match("", check, filled, bindings))
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, refused)
	}
	return nil
}

func (o *Operation) tryAssert(ctx context.Context, environment []string, object map[string]any) error {
	reference, err := fill(map[string]any{
		"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"],
	}, o.bindings)
	if err != nil {
		return err
	}
	output, err := shell(ctx, environment, "kubectl get -o json -f -", reference)
	if err != nil {
		return err
	}
	var got struct{ Items []any } // what was asked for in a file is answered with a list
	if err := json.Unmarshal(output, &got); err != nil {
		return err
	}
	if len(got.Items) != 1 {
		return fmt.Errorf("want one object, got %s", output)
	}
	return match("", object, got.Items[0], o.bindings)
}

// Undo deletes what the scenario has applied, the last first, and waits until it is gone.
func (s *Scenario) Undo(ctx context.Context, environment []string) error {
	for _, o := range slices.Backward(s.Operations) {
		for _, object := range slices.Backward(o.apply) {
			filled, err := fill(object, o.bindings)
			if err == nil {
				_, err = shell(ctx, environment, "kubectl delete --ignore-not-found --timeout=60s -f -", filled)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// shell runs a script with an object as its input, if there is one. The error has all that the script has said.
func shell(ctx context.Context, environment []string, script string, input any) (output []byte, err error) {
	command := exec.CommandContext(ctx, "sh", "-c", script)
	command.Env = environment
	if input != nil {
		text, err := json.Marshal(input)
		if err != nil {
			return nil, err
		}
		command.Stdin = bytes.NewReader(text)
	}
	var complaints bytes.Buffer
	command.Stderr = &complaints
	if output, err = command.Output(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(output)+complaints.String()))
	}
	return output, nil
}
