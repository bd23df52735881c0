//! One picture: axes, points, lines, drawn by plotters as SVG that follows the page's light or dark colours. Layer 4.
//!
//! plotters writes colours as attributes, and a style sheet overrides attributes: the ink, the grid and the ground are
//! written as three colours that nothing else uses, and templates/chart.css turns those into the page's own.

pub mod axis;
mod marker;

use crate::{Error, Result};
use askama::Template;
use axis::Axis;
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::{EmptyElement, PathElement, Text};
use plotters::prelude::{ChartBuilder, ChartContext, DrawingArea, IntoDrawingArea, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle};

/// Okabe and Ito's colours, which people with any common colour vision can tell apart (jfly.uni-koeln.de/color, 2008); their yellow,
/// which cannot be seen on white, is darker and stands late, and for black, which is the ink's, there is a grey.
pub const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0xB8, 0xA9, 0x00),
    RGBColor(0x80, 0x80, 0x80),
];
/// The text's colour, by templates/chart.css.
const INK: RGBColor = RGBColor(1, 1, 1);
/// The grid's.
const GRID: RGBColor = RGBColor(2, 2, 2);
/// The ground's, which fills hollow markers.
const GROUND: RGBColor = RGBColor(3, 3, 3);

const FONT: (&str, u32) = ("sans-serif", 13);

/// The style sheet of pictures: both the page's and that of a picture in a file of its own.
pub const STYLE: &str = include_str!("../../../templates/chart.css");

/// How a series' points are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Markers alone.
    Points,
    /// Markers joined by a line.
    Line,
    /// Pairs of points, each pair a stroke.
    Strokes,
}

/// Points of one colour.
#[derive(Debug, Clone)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Index into [`COLOURS`], and the marker's shape; taken modulo.
    pub colour: usize,
    /// A hollow marker, and a dashed line: by custom of these pages the base, or the idle figure.
    pub hollow: bool,
    /// How it is shown.
    pub style: Style,
    /// Values of the two axes. For [`Style::Strokes`] two points a stroke.
    pub points: Vec<(f64, f64)>,
}

/// A picture before it is drawn.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Heading; part of the text alternative.
    pub title: String,
    /// What a reader who cannot see the picture is told.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, later ones on top.
    pub series: Vec<Series>,
    /// Vertical lines with a word each, at places of the horizontal axis.
    pub marks: Vec<(f64, String)>,
    /// Width and height, in pixels at the size the text is meant for.
    pub size: (u32, u32),
}

/// An entry of a legend, which stands in the page as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegendEntry {
    /// The series' name.
    pub name: String,
    /// Its marker, as a path for an SVG of 14 by 14 pixels.
    pub path: String,
    /// Its colour, `#RRGGBB`.
    pub colour: String,
    /// Whether the marker is hollow.
    pub hollow: bool,
}

/// A drawn picture: what lies inside the `svg` element, and what describes it.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// Heading.
    pub title: String,
    /// Text alternative.
    pub description: String,
    /// Elements inside `svg`.
    pub body: String,
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
    /// One entry a series.
    pub legend: Vec<LegendEntry>,
}

#[derive(Template)]
#[template(path = "picture.svg", escape = "html")]
struct PictureFile<'a> {
    drawing: &'a Drawing,
    style: &'static str,
}

impl Drawing {
    /// The picture as an SVG file of its own, with its legend below.
    pub fn to_file(&self) -> Result<String> {
        PictureFile { drawing: self, style: STYLE }
            .render()
            .map_err(|cause| Error::failed(format!("cannot draw `{}`: {cause}", self.title)))
    }
}

type Canvas<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

impl Chart {
    /// Draws the picture.
    pub fn draw(&self) -> Result<Drawing> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
            self.draw_on(&root).map_err(|cause| Error::failed(format!("cannot draw `{}`: {cause}", self.title)))?;
        }
        // The page writes its own `svg` element, with the text alternative; only what is inside is taken.
        let inside = svg.find('>').map_or("", |at| &svg[at + 1..]);
        let body = inside.trim_end().trim_end_matches("</svg>").replace(" opacity=\"1\"", "");
        Ok(Drawing {
            title: self.title.clone(),
            description: self.description.clone(),
            body,
            width: self.size.0,
            height: self.size.1,
            legend: self.series.iter().filter(|series| !series.name.is_empty()).map(Series::legend_entry).collect(),
        })
    }

    fn draw_on<'a>(
        &self,
        root: &DrawingArea<SVGBackend<'a>, Shift>,
    ) -> std::result::Result<(), Box<dyn std::error::Error + 'a>> {
        let mut canvas = ChartBuilder::on(root)
            .margin(10)
            .margin_top(16)
            .margin_right(26)
            .x_label_area_size(if self.x.title.is_empty() { 28 } else { 44 })
            .y_label_area_size(self.y.label_width() + if self.y.title.is_empty() { 8 } else { 28 })
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        canvas
            .configure_mesh()
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(plotters::style::TRANSPARENT)
            .label_style(FONT.into_font().color(&INK))
            .axis_desc_style(FONT.into_font().color(&INK))
            .x_desc(&self.x.title)
            .y_desc(&self.y.title)
            .draw()?;
        for (at, word) in &self.marks {
            draw_mark(&mut canvas, *at, word, (self.y.low(), self.y.high()))?;
        }
        for series in &self.series {
            series.draw(&mut canvas)?;
        }
        drop(canvas);
        root.present()?;
        Ok(())
    }
}

fn draw_mark<'a>(
    canvas: &mut Canvas<'a>,
    at: f64,
    word: &str,
    (low, high): (f64, f64),
) -> std::result::Result<(), Box<dyn std::error::Error + 'a>> {
    let line = ShapeStyle { color: COLOURS[1].to_rgba(), filled: false, stroke_width: 2 };
    canvas.draw_series([PathElement::new(vec![(at, low), (at, high)], line)])?;
    let style = FONT.into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Top));
    canvas.draw_series([EmptyElement::at((at, high)) + Text::new(word.to_owned(), (4, 2), style)])?;
    Ok(())
}

impl Series {
    fn rgb(&self) -> RGBColor {
        COLOURS[self.colour % COLOURS.len()]
    }

    fn legend_entry(&self) -> LegendEntry {
        let RGBColor(red, green, blue) = self.rgb();
        let path = if self.style == Style::Strokes { "M1 9 L13 5".to_owned() } else { marker::path(self.colour) };
        LegendEntry {
            name: self.name.clone(),
            path,
            colour: format!("#{red:02X}{green:02X}{blue:02X}"),
            hollow: self.hollow || self.style == Style::Strokes,
        }
    }

    fn draw<'a>(&self, canvas: &mut Canvas<'a>) -> std::result::Result<(), Box<dyn std::error::Error + 'a>> {
        let stroke = |width| ShapeStyle { color: self.rgb().to_rgba(), filled: false, stroke_width: width };
        if self.style == Style::Strokes {
            let pairs = self.points.chunks_exact(2).map(|pair| PathElement::new(pair.to_vec(), stroke(3)));
            canvas.draw_series(pairs)?;
            return Ok(());
        }
        if self.style == Style::Line {
            let points = self.points.clone();
            if self.hollow {
                let dashes = plotters::series::DashedLineSeries::new(points, 6, 4, stroke(2));
                canvas.draw_series(dashes)?;
            } else {
                canvas.draw_series([PathElement::new(points, stroke(2))])?;
            }
        }
        let fill = if self.hollow { GROUND } else { self.rgb() };
        for &point in &self.points {
            marker::draw(canvas, point, self.colour, fill.filled(), stroke(2))?;
        }
        Ok(())
    }
}
