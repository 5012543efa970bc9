// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vulnerabilities reports whether a vulnerability database for govulncheck, whose version this module pins, can be
// read. govulncheck itself has no limit of time for that, loads all packages first, and has one exit code for all its errors.
//
//	vulnerabilities URL
//
// It exits with 0 if the database answers, and with 1, saying why, if it does not within ten seconds.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const limit = 10 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vulnerabilities URL")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := reach(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // cancel has nothing left to do
	}
}

// reach asks the database when it was last changed, which every database answers.
func reach(ctx context.Context, database string) error {
	at, err := url.Parse(database)
	if err != nil {
		return err
	}
	at = at.JoinPath("index", "db.json")
	if at.Scheme == "file" {
		_, err := os.Stat(filepath.FromSlash(at.Path))
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s", at, response.Status)
	}
	return nil
}
