#include "bench/report_page.h"

#include <fmt/core.h>

#include <fstream>
#include <utility>

#include "bench/svg_plot.h"

namespace sluice::elastic {
namespace {

// At most some 600 times of each.
Trace Thinned(const Trace& trace) {
  const size_t stride = 1 + trace.seconds.size() / 600;
  const auto thin = [stride](const std::vector<double>& values) {
    std::vector<double> kept;
    for (size_t i = 0; i < values.size(); i += stride) {
      kept.push_back(values[i]);
    }
    return kept;
  };
  Trace thinned{thin(trace.seconds), thin(trace.used),          thin(trace.pending), {},
                thin(trace.service), thin(trace.service_wanted)};
  for (const std::vector<double>& job : trace.jobs) {
    thinned.jobs.push_back(thin(job));
  }
  return thinned;
}

}  // namespace

Report::Report(std::filesystem::path folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)) {
  std::filesystem::create_directories(folder_ / "cluster");
}

void Report::Row(const std::string& what, const std::vector<std::string>& cells) {
  page_ += "| " + what + " |";
  for (const std::string& cell : cells) {
    page_ += " " + cell + " |";
  }
  page_ += "\n";
}

void Report::Plot(const std::string& name, const std::string& title, const Trace& whole,
                  const std::string& unit, bool service, bool pending) {
  const Trace trace = Thinned(whole);
  std::vector<bench::Panel> panels;
  bench::Panel jobs{"running workers, by job", {}, true, 0};
  for (const std::vector<double>& workers : trace.jobs) {
    jobs.lines.push_back({"", workers});
  }
  panels.push_back(std::move(jobs));
  panels.push_back({unit, {{"used", trace.used}}, false, 1});
  if (pending) {
    panels.push_back({"jobs without a worker yet", {{"pending", trace.pending}}, false, 0});
  }
  if (service) {
    panels.push_back({"pods of the service",
                      {{"wanted", trace.service_wanted}, {"running", trace.service}},
                      false,
                      0});
  }
  std::ofstream(folder_ / "cluster" / (name + ".svg"))
      << bench::PlotSvg(title, trace.seconds, panels);
  page_ += fmt::format("\n![{}](cluster/{}.svg)\n", title, name);
}

void Report::Write() const {
  std::ofstream(folder_ / (name_ + ".md")) << page_;
  fmt::print("{}", page_);
}

std::string Number(double value, int digits) {
  return fmt::format("{:.{}f}", value, digits);
}
std::string Percent(double value) {
  return fmt::format("{:.1f} %", 100 * value);
}

}  // namespace sluice::elastic
