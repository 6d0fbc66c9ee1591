/** Shapes that say what colour says as well. */

import type { JSX } from "preact";

const SHAPES: Record<string, JSX.Element> = {
  check: (
    <path d="M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm3.2 4.9-3.8 4a.8.8 0 0 1-1.2 0L4.6 8.7l1.1-1.1 1.1 1.2 3.3-3.5Z" />
  ),
  cross: (
    <path
      d="m8 .8 7.2 7.2L8 15.2.8 8Zm2.6 3.5L8 6.9 5.4 4.3 4.3 5.4 6.9 8l-2.6 2.6 1.1 1.1L8 9.1l2.6 2.6 1.1-1.1L9.1 8l2.6-2.6Z"
      fill-rule="evenodd"
    />
  ),
  clock: (
    <path
      d="M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3Zm-.8 1.6v3.8l2.9 1.8.7-1.2-2.1-1.3V4.600Z"
      fill-rule="evenodd"
    />
  ),
  play: (
    <path
      d="M8 1.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13ZM6.300 4.900 11.200 8l-4.900 3.100Z"
      fill-rule="evenodd"
    />
  ),
  dash: (
    <path
      d="M8 1.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13ZM8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3ZM4.900 7.200h6.200v1.600H4.900Z"
      fill-rule="evenodd"
    />
  ),
  ring: (
    <path
      d="M8 2.500a5.500 5.500 0 1 0 0 11 5.500 5.500 0 0 0 0-11ZM8 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8Z"
      fill-rule="evenodd"
    />
  ),
  arrow: <path d="M2 7.200h8L7.200 4.400l1.100-1.100L13 8l-4.700 4.700-1.100-1.100L10 8.800H2Z" />,
  turn: (
    <path d="M8 2.500c1.600 0 3 .7 4 1.800V2.500h1.500v4.400H9.100V5.400h1.900A4 4 0 1 0 12 8h1.500A5.500 5.500 0 1 1 8 2.500Z" />
  ),
  bang: <path d="M8 1.200 15.300 14H.7Zm-.8 4.900v3.900h1.600V6.100Zm0 4.900v1.500h1.600V11Z" fill-rule="evenodd" />,
  square: <path d="M2.500 2.500h11v11h-11ZM4 4v8h8V4Z" fill-rule="evenodd" />,
  pause: <path d="M4.200 3h2.600v10H4.200Zm5 0h2.600v10H9.200Z" />,
};

export function Icon({ name }: { name: keyof typeof SHAPES | string }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {SHAPES[name]}
    </svg>
  );
}
