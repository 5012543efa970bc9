// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"maps"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// runConfig returns the document that the proxyrunner starts from. ToolHive's operator also writes down the chain of
// middlewares; it is left out, as the runner makes the same one from the other fields when it finds none. The one part that
// ToolHive's operator decides from its own environment is usage metrics, see Options.NoUsageMetrics.
func (r *renderer) runConfig() *runconfig.RunConfig {
	spec := &r.server.Spec
	document := &runconfig.RunConfig{
		SchemaVersion:     runconfig.SchemaVersion,
		Generation:        runconfig.Generation,
		Image:             spec.Image,
		CmdArgs:           spec.Args,
		Name:              r.name,
		ContainerName:     r.name,
		BaseName:          r.name,
		Transport:         r.transport,
		Host:              cmp.Or(r.opts.ProxyHost, DefaultProxyHost),
		Port:              r.proxyPort,
		TargetPort:        r.mcpPort,
		PermissionProfile: r.permissionProfile(),
		EnvVars:           make(map[string]string, len(spec.Env)+3),
		ContainerLabels:   containerLabels(r.server),
		Authz:             r.authz(),
		TrustProxyHeaders: spec.TrustProxyHeaders,

		MaxRequestBodySize: spec.MaxRequestBodySize,
		ProxyReadTimeout:   r.readTimeoutText(),

		ProxyMode:      r.proxyMode,
		EndpointPrefix: spec.EndpointPrefix,
		Scaling:        r.scaling(),
	}
	if !r.stdio() {
		document.TargetHost = inventory.BackendService.Name(r.name)
	}
	for _, v := range spec.Env {
		document.EnvVars[v.Name] = v.Value
	}
	maps.Copy(document.EnvVars, r.transportEnv())
	for _, v := range spec.Volumes {
		mount := v.HostPath + ":" + v.MountPath
		if v.ReadOnly {
			mount += ":ro"
		}
		document.Volumes = append(document.Volumes, mount)
	}
	if spec.Audit != nil && spec.Audit.Enabled {
		document.Audit = runconfig.DefaultAudit()
	}
	r.proxy.complete(document)
	if spec.RateLimiting != nil {
		document.RateLimit = r.rateLimit()
		document.RateLimitNamespace = r.namespace
	}
	return document
}

// scaling returns the proxy's configuration of the session store; nil when there is none. Unlike ToolHive's operator it
// leaves out the number of backend pods: a runner that makes no pods does not need it, and would be restarted each time
// the backend is scaled.
func (r *renderer) scaling() *runconfig.Scaling {
	redis := r.sessionRedis()
	if redis == nil {
		return nil
	}
	return &runconfig.Scaling{SessionRedis: redis}
}

// sessionRedis returns the session store: the MCPServer's, or the operator's where the MCPServer chooses none.
func (r *renderer) sessionRedis() *runconfig.SessionRedis {
	if storage := r.server.Spec.SessionStorage; storage != nil {
		if storage.Provider != v1beta1.SessionStorageRedis {
			return nil
		}
		return &runconfig.SessionRedis{
			Address: storage.Address, DB: storage.DB, KeyPrefix: storage.KeyPrefix, TLS: r.redisTLS(),
		}
	}
	if redis := r.opts.DefaultRedis; redis != nil {
		return &runconfig.SessionRedis{Address: redis.Address, TLS: r.redisTLS()}
	}
	return nil
}

// redisTLS returns the proxy's TLS configuration for the session store; nil where it does not.
func (r *renderer) redisTLS() *runconfig.RedisTLS {
	tls := &runconfig.RedisTLS{}
	switch storage, redis := r.server.Spec.SessionStorage, r.opts.DefaultRedis; {
	case storage != nil && storage.TLS != nil:
		tls.InsecureSkipVerify = storage.TLS.InsecureSkipVerify
	case storage == nil && redis != nil && redis.TLS:
	default:
		return nil
	}
	if secret, _ := r.redisCA(); secret != "" {
		tls.CACertFile = pathRedisCA
	}
	return tls
}

// redisCA returns the Secret, and the key in it, of the certificate authorities of the session store; empty for those
// of the proxy's image.
func (r *renderer) redisCA() (secret, key string) {
	if storage := r.server.Spec.SessionStorage; storage != nil {
		if storage.TLS != nil && storage.TLS.CACertSecretRef != nil {
			return storage.TLS.CACertSecretRef.Name, storage.TLS.CACertSecretRef.Key
		}
		return "", ""
	}
	if redis := r.opts.DefaultRedis; redis != nil && redis.TLS {
		return redis.CASecret, redis.CAKey
	}
	return "", ""
}

// redisPassword returns the Secret, and the key in it, of the session store's password; empty when it has none.
func (r *renderer) redisPassword() (secret, key string) {
	if storage := r.server.Spec.SessionStorage; storage != nil {
		if ref := storage.PasswordRef; ref != nil && storage.Provider == v1beta1.SessionStorageRedis {
			return ref.Name, ref.Key
		}
		return "", ""
	}
	if redis := r.opts.DefaultRedis; redis != nil {
		return redis.PasswordSecret, redis.PasswordKey
	}
	return "", ""
}
