// Renders the templates of a Helm chart with nothing but text/template, in the order of their
// names: render_chart FOLDER NAMESPACE. The values are those of values.yaml, a text in quotes each.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	folder := os.Args[1]
	bytes, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	must(err)
	values := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(bytes)), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		values[key] = strings.ReplaceAll(value[1:len(value)-1], "''", "'")
	}
	files, err := filepath.Glob(filepath.Join(folder, "templates", "*.yaml"))
	must(err)
	for _, file := range files {
		parsed, err := template.New(filepath.Base(file)).Option("missingkey=error").ParseFiles(file)
		must(err)
		fmt.Printf("# %s\n", filepath.Base(file))
		must(parsed.Execute(os.Stdout, map[string]any{
			"Values":  values,
			"Release": map[string]string{"Namespace": os.Args[2]},
		}))
	}
}
