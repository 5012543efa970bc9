module github.com/freehold-dev/freehold/hack/tools/testreport

go 1.26.0
