module github.com/solarwinds/swo-sdk-go/swov1

go 1.25.5
