// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// WebhookRequest is the part that tests look at of what ToolHive's proxyrunner asks a webhook.
type WebhookRequest struct {
	Version string `json:"version"`
	UID     string `json:"uid"`
	// MCPRequest is the client's.
	MCPRequest struct {
		Method string `json:"method"`
		Params struct {
			Name      string         `json:"name"`
			Arguments map[string]any `json:"arguments"`
		} `json:"params"`
	} `json:"mcp_request"`
}

// Patch is one operation of a JSON patch (RFC 6902).
type Patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Verdict is what a webhook decides. Only a mutating one may have patches; their paths begin with /mcp_request.
type Verdict struct {
	Allowed bool
	Patches []Patch
}

// Webhook decides about the requests of clients, when it is asked with a signature by its key.
type Webhook struct {
	// Decide is called for every request that is signed well.
	Decide func(WebhookRequest) Verdict

	mu  sync.Mutex
	key string
	// refused counts the requests that were not signed well.
	refused int
}

// NewWebhook returns a webhook that wants the key.
func NewWebhook(key string, decide func(WebhookRequest) Verdict) *Webhook {
	return &Webhook{Decide: decide, key: key}
}

// Want has every later request signed by the key alone.
func (h *Webhook) Want(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.key = key
}

// Refused returns how many requests were not signed well.
func (h *Webhook) Refused() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// ServeHTTP implements http.Handler.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !h.signed(r.Header, body) {
		http.Error(w, "not signed by the key", http.StatusUnauthorized)
		return
	}
	var asked WebhookRequest
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	verdict := h.Decide(asked)
	told := map[string]any{"version": asked.Version, "uid": asked.UID, "allowed": verdict.Allowed}
	if len(verdict.Patches) > 0 {
		told["patch_type"], told["patch"] = "json_patch", verdict.Patches
	}
	answer(w, http.StatusOK, told)
}

// signed tells whether the signature is the one by the key, of the time and the body.
func (h *Webhook) signed(header http.Header, body []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hmac.Equal([]byte(header.Get("X-ToolHive-Signature")), []byte(sign(h.key, header.Get("X-ToolHive-Timestamp"), body))) {
		return true
	}
	h.refused++
	return false
}

func sign(key, time string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(time + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
