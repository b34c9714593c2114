#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace sluice::models {

// The value of a metric that is undefined for these rows.
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Weights of positive and negative rows in the order of their scores. Immutable.
class ScoreCurve {
 public:
  struct Point {
    double score = 0;
    double positive = 0;
    double negative = 0;
  };
  // `points`: by ascending score, each score once.
  explicit ScoreCurve(std::vector<Point> points);

  double Auc() const;               // NaN unless both classes occur
  double AveragePrecision() const;  // NaN without positives
  // The best score from which on rows are taken as positive: between that score and the next lower
  // one. With a cost (of a missed positive, where a false one costs 1) it minimises the cost;
  // without one it maximises F1, whose value is `f1`. NaN without positives.
  struct Cut {
    double threshold = kNotANumber;
    double f1 = kNotANumber;
  };
  Cut BestF1() const { return BestCut(0); }
  Cut LeastCost(double cost) const { return BestCut(cost); }
  // The weight of rows whose score is at least this; NaN from NaN on. Takes logarithmic time.
  struct Taken {
    double positive = 0;
    double negative = 0;
  };
  Taken From(double threshold) const;

 private:
  Cut BestCut(double cost) const;  // 0: by F1

  std::vector<Point> points_;
  std::vector<Taken> from_;  // from each point on; the last one, behind all points, is zero
};

}  // namespace sluice::models
