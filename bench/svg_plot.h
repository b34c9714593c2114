#pragma once

#include <string>
#include <vector>

namespace sluice::bench {

// A plot over time as an SVG document, readable on light and dark pages.
struct Line {
  std::string name;
  std::vector<double> values;  // one for each time
};

struct Panel {
  std::string title;  // "workers, by job"
  std::vector<Line> lines;
  bool stacked = false;  // areas upon each other, without names
  double top = 0;        // of the axis; 0: the largest value
};

// The panels share the times and stand below each other.
std::string PlotSvg(const std::string& title, const std::vector<double>& seconds,
                    const std::vector<Panel>& panels);

}  // namespace sluice::bench
