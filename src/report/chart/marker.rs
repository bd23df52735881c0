//! Markers that differ in shape as well as in colour. Layer 4.

use super::Canvas;
use plotters::element::{Circle, EmptyElement, PathElement, Polygon};
use plotters::style::ShapeStyle;

/// A marker's reach from its middle, in pixels.
const RADIUS: i32 = 5;

/// The corners of the marker of a colour around (0, 0); none for the circle.
fn corners(shape: usize) -> Vec<(i32, i32)> {
    let r = RADIUS;
    match shape % 5 {
        1 => vec![(0, -r - 1), (r + 1, r - 1), (-r - 1, r - 1)],
        2 => vec![(-r + 1, -r + 1), (r - 1, -r + 1), (r - 1, r - 1), (-r + 1, r - 1)],
        3 => vec![(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
        4 => vec![(-r - 1, 1 - r), (r + 1, 1 - r), (0, r + 1)],
        _ => Vec::new(),
    }
}

/// The marker as the path of an SVG of 14 by 14 pixels, for a legend.
pub(super) fn path(shape: usize) -> String {
    let corners = corners(shape);
    if corners.is_empty() {
        return format!("M{} 7 a{RADIUS} {RADIUS} 0 1 0 {} 0 a{RADIUS} {RADIUS} 0 1 0 -{} 0 Z", 7 - RADIUS, 10, 10);
    }
    let points: Vec<String> = corners.iter().map(|(x, y)| format!("{} {}", x + 7, y + 7)).collect();
    format!("M{} Z", points.join(" L"))
}

/// Draws one marker.
pub(super) fn draw<'a>(
    canvas: &mut Canvas<'a>,
    at: (f64, f64),
    shape: usize,
    fill: ShapeStyle,
    stroke: ShapeStyle,
) -> std::result::Result<(), Box<dyn std::error::Error + 'a>> {
    let mut outline = corners(shape);
    if let Some(&first) = outline.first() {
        canvas.draw_series([EmptyElement::at(at) + Polygon::new(outline.clone(), fill)])?;
        outline.push(first);
        canvas.draw_series([EmptyElement::at(at) + PathElement::new(outline, stroke)])?;
    } else {
        canvas.draw_series([EmptyElement::at(at) + Circle::new((0, 0), RADIUS, fill)])?;
        canvas.draw_series([EmptyElement::at(at) + Circle::new((0, 0), RADIUS, stroke)])?;
    }
    Ok(())
}
