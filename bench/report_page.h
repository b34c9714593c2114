#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/simulation/cluster_experiments.h"

namespace sluice::elastic {

// A page of figures about shared clusters, with plots in the folder `cluster` beside it.
class Report {
 public:
  // FOLDER/NAME.md
  Report(std::filesystem::path folder, std::string name);
  void Text(const std::string& text) { page_ += text; }
  void Row(const std::string& what, const std::vector<std::string>& cells);
  // `unit` is the title of what is used.
  void Plot(const std::string& name, const std::string& title, const Trace& whole,
            const std::string& unit, bool service, bool pending);
  // Also to standard output.
  void Write() const;

 private:
  const std::filesystem::path folder_;
  const std::string name_;
  std::string page_;
};

std::string Number(double value, int digits);
std::string Percent(double value);

}  // namespace sluice::elastic
