#include "bench/svg_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::bench {
namespace {

constexpr double kWidth = 760, kLeft = 56, kRight = 130, kPanelHeight = 150, kGap = 46, kTop = 44;
constexpr std::array<const char*, 6> kColours = {"#2b6cb0", "#c05621", "#2f855a",
                                                 "#b83280", "#6b46c1", "#718096"};
constexpr const char* kGrey = "#8a8f98";

// 1, 2 or 5 times a power of ten, about a quarter of the range.
double StepOf(double range) {
  const double power = std::pow(10, std::floor(std::log10(std::max(range, 1e-9) / 4)));
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    if (range / (times * power) <= 5) {
      return times * power;
    }
  }
  return 10 * power;
}

std::string Number(double value) {
  return fmt::format("{:g}", std::round(value * 1000) / 1000);
}

class Writer {
 public:
  Writer(const std::vector<double>& seconds, double height) : seconds_(seconds) {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n",
        kWidth, height, kGrey);
  }
  void Text(double x, double y, const std::string& text, const char* anchor = "start",
            const char* colour = kGrey) {
    svg_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n",
                        Number(x), Number(y), anchor, colour, text);
  }
  void Draw(const Panel& panel, double y) {
    const double top = TopOf(panel);
    Text(kLeft, y - 8, panel.title);
    Axes(y, top);
    if (panel.stacked) {
      DrawAreas(panel, y, top);
      return;
    }
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      const char* const colour = kColours[i % kColours.size()];
      svg_ += fmt::format(
          "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n", colour,
          Points(panel.lines[i].values, y, top));
      Text(kWidth - kRight + 8, y + 14 + 16.0 * static_cast<double>(i), panel.lines[i].name,
           "start", colour);
    }
  }
  std::string Take() { return svg_ + "</svg>\n"; }

 private:
  static double TopOf(const Panel& panel) {
    double top = panel.top;
    std::vector<double> sums;
    for (const Line& line : panel.lines) {
      sums.resize(std::max(sums.size(), line.values.size()), 0);
      for (size_t i = 0; i < line.values.size(); ++i) {
        sums[i] = panel.stacked ? sums[i] + line.values[i] : line.values[i];
        top = panel.top > 0 ? panel.top : std::max(top, sums[i]);
      }
    }
    return top > 0 ? top : 1;
  }
  double X(size_t i) const {
    return kLeft + (kWidth - kLeft - kRight) * seconds_[i] / seconds_.back();
  }
  static double Y(double value, double y, double top) {
    return y + kPanelHeight * (1 - std::min(value, top) / top);
  }
  void Axes(double y, double top) {
    const double right = kWidth - kRight;
    for (double value = 0; value <= top * 1.0001; value += StepOf(top)) {
      svg_ += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" "
          "stroke-width=\"0.4\"/>\n",
          kLeft, right, Number(Y(value, y, top)), kGrey);
      Text(kLeft - 6, Y(value, y, top) + 4, Number(value), "end");
    }
    for (double time = 0; time <= seconds_.back() * 1.0001; time += StepOf(seconds_.back())) {
      Text(kLeft + (right - kLeft) * time / seconds_.back(), y + kPanelHeight + 16,
           fmt::format("{:g} s", time), "middle");
    }
  }
  // A corner where the value changes, nothing in between.
  std::string Points(const std::vector<double>& values, double y, double top) const {
    std::string points;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool corner = i == 0 || i + 1 == values.size() || values[i] != values[i - 1] ||
                          values[i] != values[i + 1];
      if (corner) {
        points += fmt::format("{:.1f},{:.1f} ", X(i), Y(values[i], y, top));
      }
    }
    return points;
  }
  void DrawAreas(const Panel& panel, double y, double top) {
    std::vector<std::vector<double>> sums(1, std::vector<double>(seconds_.size(), 0));
    for (const Line& line : panel.lines) {
      sums.push_back(sums.back());
      for (size_t i = 0; i < line.values.size(); ++i) {
        sums.back()[i] += line.values[i];
      }
    }
    for (size_t area = sums.size() - 1; area > 0; --area) {
      svg_ +=
          fmt::format("<path fill=\"hsl({},55%,{}%)\" d=\"M{:.1f},{:.1f} L{}L{:.1f},{:.1f} Z\"/>\n",
                      (area - 1) * 47 % 360, area % 2 == 0 ? 50 : 62, X(0), Y(0, y, top),
                      Points(sums[area], y, top), X(seconds_.size() - 1), Y(0, y, top));
    }
  }

  const std::vector<double>& seconds_;
  std::string svg_;
};

}  // namespace

std::string PlotSvg(const std::string& title, const std::vector<double>& seconds,
                    const std::vector<Panel>& panels) {
  const double height = kTop + static_cast<double>(panels.size()) * (kPanelHeight + kGap);
  Writer writer(seconds, height);
  writer.Text(kLeft, 16, title);
  for (size_t i = 0; i < panels.size(); ++i) {
    writer.Draw(panels[i], kTop + static_cast<double>(i) * (kPanelHeight + kGap));
  }
  return writer.Take();
}

}  // namespace sluice::bench
