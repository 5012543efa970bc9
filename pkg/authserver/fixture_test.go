// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import "strings"

// Certificates of made-up authorities, valid for a hundred years; nothing was kept of their keys.
const (
	certificateA = `-----BEGIN CERTIFICATE-----
MIIBgzCCASmgAwIBAgIUJUrDSZIILtZvT82Ho2Yd6+siznYwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLYXV0aG9yaXR5IGEwIBcNMjYxMTIyMTQ1NTIxWhgPMjEyNjEw
MjkxNDU1MjFaMBYxFDASBgNVBAMMC2F1dGhvcml0eSBhMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEOOTUzt6Bx2Gdoopeu9qLxjpGVahu1qLmKWZUlbadt1rpnq8f
0cr0WW6LmL5T30yxz3eZAvgmQC5BcfDPJ2nEkKNTMFEwHQYDVR0OBBYEFFj732hl
2szE9GlQyTMXo5BKowOpMB8GA1UdIwQYMBaAFFj732hl2szE9GlQyTMXo5BKowOp
MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAJBGAev4alzWjSq5
svRWdTubcq9sJCy9HqSIF4qNloi5AiAgAd6dyXkEH3LZqUpAj3M/MU28Zz46qVxM
HW3j2Bv60g==
-----END CERTIFICATE-----
`
	certificateB = `-----BEGIN CERTIFICATE-----
MIIBhDCCASmgAwIBAgIUG3nT3eGJAz7VPovrMTCkgtu+R70wCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLYXV0aG9yaXR5IGIwIBcNMjYxMTIyMTQ1NTIxWhgPMjEyNjEw
MjkxNDU1MjFaMBYxFDASBgNVBAMMC2F1dGhvcml0eSBiMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEnPbGbX0cOiqz/XaxVtM0O/0zdRaW91LLHveVgTRzLO6BeLFP
A/XIEL2unjPHqp5C28i7z4bjzkKMiXS9UidTHqNTMFEwHQYDVR0OBBYEFJJ5rvVT
kadfJuuX+aH+OUj7WmchMB8GA1UdIwQYMBaAFJJ5rvVTkadfJuuX+aH+OUj7Wmch
MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAJv5YI0xL/7s1L3b
DJhNBZxUaT+wiBxdgrmpFNnNaibjAiEA2POCJSW+X0dmDzajL6QytbX//QxauHZP
3JEZDFG06Zc=
-----END CERTIFICATE-----
`
)

// What is not a certificate.
const (
	privateKey         = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
	certificateRequest = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
	brokenCertificate  = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
)

// headedCertificate is a certificate in a PEM block with a header.
var headedCertificate = strings.Replace(certificateA, "-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nName: a\n\n", 1)
